"""Helpers for tests of the lab: run commands on its hosts over ssh, and submit jobs."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from yurt.lab import Lab
from yurt.lab.cluster import inside


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


class Ssh:
    """Runs commands on hosts of a lab as one of its users, with the lab's ssh config."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.config = str(lab.instance.client / "ssh_config")
        self.jobs: dict[str, list[str]] = {}
        """Submitted jobs by cluster."""

    def ask(self, host: str, command: str, *, user: str = "alice", timeout: float = 240, connect: int = 5) -> Answer:
        options = ["-o", "BatchMode=yes", "-o", f"ConnectTimeout={connect}"]
        argv = ["ssh", "-F", self.config, *options, "-l", user, host, command]
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, check=False
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def __call__(self, host: str, command: str, **more: object) -> str:
        """Return the standard output of a command that must succeed."""
        answer = self.ask(host, command, connect=60, **more)  # type: ignore[arg-type]
        assert answer.code == 0, answer
        return answer.out.strip()

    def send(self, folder: Path, host: str, target: str) -> None:
        """Copy the contents of a folder into one that exists on a host; they belong to the user there."""
        receive = ["ssh", "-F", self.config, "-o", "BatchMode=yes", host, f"tar -C {target} -x --no-same-owner"]
        with subprocess.Popen(["tar", "-C", str(folder), "-c", "."], stdout=subprocess.PIPE) as sending:
            subprocess.run(receive, stdin=sending.stdout, stdout=subprocess.DEVNULL, check=True)
        assert sending.returncode == 0

    def submit(self, host: str, script: str, options: str = "", *, user: str = "alice") -> str:
        """Submit a job from the user's scratch folder; return its id."""
        quoted = script.replace("'", "'\\''")
        command = f"cd /lustre/scratch/{user} && sbatch --parsable {options} --wrap '{quoted}'"
        job = self(host, command, user=user).splitlines()[-1]
        self.jobs.setdefault(host, []).append(job)
        return job

    def end_jobs(self) -> None:
        """Cancel all jobs submitted through this object."""
        for cluster, jobs in self.jobs.items():
            argv = inside(self.lab.cluster(cluster).pid("ctl"), ["scancel", *jobs])
            subprocess.run(argv, capture_output=True, check=False, timeout=60)

    def state(self, host: str, job: str) -> str:
        """Return the controller's state of a job."""
        return self(host, f"scontrol show job {job} | sed -n 's/.*JobState=\\([A-Z_]*\\).*/\\1/p'").splitlines()[-1]


@pytest.fixture
def ssh(lab: Lab) -> Iterator[Ssh]:
    """ssh to the lab. Cancels the jobs of a test after it."""
    found = Ssh(lab)
    yield found
    found.end_jobs()
