"""Hosts to test on: this machine, both clusters by ssh, nodes of both."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.user import end_masters
from yurt.hosts import SshHost
from yurt.lab import Lab
from yurt.lab.cluster import inside
from yurt.testing.waiting import eventually


@pytest.fixture(autouse=True)
def runtime(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Give each test its own connections and close them at its end."""
    folder = Path(f"/tmp/yt-{abs(hash(str(tmp_path))) % 10**8}")
    monkeypatch.setenv("YURT_RUNTIME_DIR", str(folder))
    yield folder
    if folder.exists():
        end_masters(folder)


def site(lab: Lab, name: str, *more: str, user: str = "alice") -> SshHost:
    return SshHost(name, f"{user}@{name}", ["-F", str(lab.instance.client / "ssh_config"), *more])


@contextmanager
def running_job(lab: Lab, cluster: str, node: str) -> Iterator[str]:
    """Run a job of alice on a node for the time of the block; yield its id."""
    login = lab.cluster(cluster).pid(lab.cluster(cluster).spec.login.name)

    def ask(command: str) -> str:
        argv = inside(login, ["runuser", "-u", "alice", "--", "sh", "-c", f"cd /lustre/scratch/alice && {command}"])
        return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120).stdout.strip()

    job = ask(f"sbatch --parsable -w {node} -o /dev/null --wrap 'sleep 600'")
    try:
        eventually(lambda: ask(f"squeue -h -j {job} -o %T") == "RUNNING")
        yield job
    finally:
        ask(f"scancel {job}")
