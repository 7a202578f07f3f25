"""A job reads the profile of the login shell: exported variables and functions, whatever the profile does."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from yurt.backends import scripts
from yurt.lab import Lab

BEFORE = {"PATH": os.environ["PATH"], "KEPT": "1", "CHANGED": "old", "SLURM_JOB_ID": "7", "TMPDIR": "/job/tmp"}


def read(home: Path, profile: str, then: str, *, seconds: int = 30, **more: str) -> subprocess.CompletedProcess[str]:
    """Read a profile as a job does, then run a command in bash."""
    (home / ".bash_profile").write_text(profile)
    script = scripts.text("profile.sh", "job") + f"profile={seconds} run={home} sweep=\nfail() {{ echo own; }}\n"
    script += f'read_profile\neval "$yurt_profile"\n{then}\n'
    return subprocess.run(
        ["bash", "-c", script],
        env={**BEFORE, **more, "HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def recorded(home: Path) -> list[str]:
    names: list[str] = json.loads((home / "profile.json").read_text())["names"]
    return names


ODD = 'it\'s "two"\n$lines `and` \\ é \x01'


def test_variables_and_functions(tmp_path: Path) -> None:
    profile = """\
    echo noise; echo noise >&2
    export CHANGED=new SLURM_JOB_ID=8 TMPDIR=/elsewhere run=mine YURT_OUTPUTS=x CUDA_VISIBLE_DEVICES=3
    own=3
    greet() { echo "hello $1"; }
    hidden() { :; }
    fail() { echo profile; }
    export -f greet fail
    """
    shows = 'echo "$CHANGED $SLURM_JOB_ID $TMPDIR ${YURT_OUTPUTS-} ${own-} ${CUDA_VISIBLE_DEVICES-}"; fail; '
    done = read(tmp_path, profile, shows + 'bash -c "greet you"; type hidden; env | grep ^KEPT')
    assert done.stdout == "new 7 /job/tmp   \nown\nhello you\nKEPT=1\n", done
    assert {"CHANGED", "run", "greet"} <= set(recorded(tmp_path))
    assert not {"KEPT", "SLURM_JOB_ID", "TMPDIR", "own", "hidden", "fail", "CUDA_VISIBLE_DEVICES"} & set(
        recorded(tmp_path)
    )


def test_any_value_arrives_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "value").write_text(ODD)
    done = read(tmp_path, "NEW=$(cat ~/value; echo x); export NEW=${NEW%x}", 'printf %s "$NEW"')
    assert done.stdout == ODD and "NEW" in recorded(tmp_path)
    assert "two" not in (tmp_path / "profile.json").read_text(), "values are not recorded"


def test_the_checksum_depends_on_the_values(tmp_path: Path) -> None:
    sums = []
    for value in ("a", "a", "b"):
        read(tmp_path, f"export NEW={value}", ":")
        sums.append(json.loads((tmp_path / "profile.json").read_text())["sha256"])
        (tmp_path / "profile.json").unlink()
    assert sums[0] == sums[1] != sums[2] and len(sums[0]) == 64


@pytest.mark.parametrize("profile", ["export NEW=1; sleep 300", "export NEW=1; exit 0", "exec true", "kill -9 $$"])
def test_a_profile_that_does_not_end_well(tmp_path: Path, profile: str) -> None:
    started = time.monotonic()
    done = read(tmp_path, profile, 'echo "code ${NEW-unset}"', seconds=2)
    assert done.stdout == "code unset\n" and "did not finish" in done.stderr and "login_profile: false" in done.stderr
    assert time.monotonic() - started < 30 and not (tmp_path / "profile.json").exists()


def test_a_process_that_the_profile_leaves_running(tmp_path: Path) -> None:
    """Like ssh-agent. It holds the pipe open."""
    started = time.monotonic()
    done = read(tmp_path, "sleep 50 & export NEW=$!", 'kill $NEW && echo "killed"')
    assert done.stdout == "killed\n" and time.monotonic() - started < 30, done


SCRIPT = """\
#!/bin/bash
echo "$SCRATCH $PROJECT $TOKEN $MINE"
module load cuda/12.1 && module list 2>&1 | grep -o cuda/12.1
"""


@pytest.fixture
def ssh(lab: Lab) -> Ssh:
    return Ssh(lab)


@pytest.mark.lab
@pytest.mark.parametrize("context", ["alpha", "beta"])
@pytest.mark.parametrize("grid", [[], ["--grid", "n=1,2"]], ids=["run", "sweep"])
def test_in_a_job(laptop: Laptop, ssh: Ssh, context: str, grid: list[str]) -> None:
    """The job has what a login shell has; no value is on the shared disk, nor in the records of Slurm."""
    (laptop.project / "job.sh").write_text(SCRIPT)
    (laptop.project / "job.sh").chmod(0o755)
    token = f"token-{os.urandom(8).hex()}"
    ssh(context, f"echo '. ~/.profile; export TOKEN={token} MINE=theirs' > ~/.bash_profile")
    try:
        run = laptop.run(context, *grid, "--var", "MINE=mine", "./job.sh")["run"]
        assert laptop.ended(run["id"])["state"] == "completed"
    finally:
        ssh(context, "rm ~/.bash_profile")
    user = "/lustre/scratch/alice /lustre/project/alice"
    name = f"{run['id']}.1" if grid else run["id"]
    assert laptop.quick("logs", name).out == f"{user} {token} mine\ncuda/12.1\n"
    names = json.loads(ssh(context, f"cat {run['folder']}/profile.json").splitlines()[-1])["names"]
    assert {"TOKEN", "MINE", "module"} <= set(names)
    assert (
        ssh(context, f"grep -rl {token} {run['folder']} | grep -v 'out.log$' || echo none").splitlines()[-1] == "none"
    )
    if context == "alpha":
        job = laptop.row(run["id"])["job"]
        assert token not in ssh(
            context, f"sacct -j {job} --env-vars; sacct -j {job} --batch-script; scontrol show config"
        )


@pytest.mark.lab
def test_switched_off(laptop: Laptop, lab: Lab) -> None:
    del lab
    assert laptop.quick("context", "copy", "alpha", "plain").code == 0
    file = Path(laptop.environment["YURT_CONFIG_HOME"]) / "contexts.yaml"
    text = file.read_text()
    at = text.index("plain:")
    file.write_text(text[:at] + text[at:].replace("storage_dir:", "login_profile: false\n    storage_dir:", 1))
    run = laptop.run("plain", "sh", "-c", 'echo "${SCRATCH-none}"')["run"]["id"]
    assert laptop.ended(run)["state"] == "completed" and laptop.quick("logs", run).out == "none\n"
