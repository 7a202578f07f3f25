"""Odd files in run folders, and odd output of sbatch, neither block yurt nor mislead it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from tests.user import User
from yurt.backends.job import script
from yurt.backends.job.frames import keeper
from yurt.testing.runs import PATIENT
from yurt.testing.waiting import eventually


@pytest.mark.parametrize("name", ["exit.json", "winner", "status.json"])
def test_a_pipe_is_not_read(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    text = f"{script.gate()}cd '{tmp_path}'; read_written {name} || echo none"
    done = subprocess.run(["dash", "-c", text], capture_output=True, text=True, check=True, timeout=20)
    assert done.stdout == "none\n"


def test_logs_that_are_pipes(user: User) -> None:
    run = user("--json", "run", "sh", "-c", f"rm ../err.log; mkfifo ../err.log; {PATIENT}").json["data"]["run"]
    folder = Path(run["folder"])
    eventually((folder / "err.log").is_fifo)
    done = user("logs", run["id"])
    assert done.code == 0 and "begun" in done.out, done
    assert "piece()" in keeper()


@pytest.mark.parametrize(
    ("reply", "job"),
    [
        ("4711", "4711"),
        ("4711;big", "4711"),
        ("Welcome to 2 clusters\n4711\nYou have 250 core hours left", "4711"),
        ("2026-11-16 all is well\n4711;big\n12 jobs are ahead", "4711"),
        ("nothing", ""),
    ],
)
def test_the_job_id_in_the_output_of_sbatch(reply: str, job: str) -> None:
    text = f'{script.gate()}job_id "$1"'
    done = subprocess.run(["dash", "-c", text, "sh", reply], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == job


def test_import_trusts_no_recorded_folder(user: User, tmp_path: Path) -> None:
    run = user("--json", "run", "--wait", "true").json["data"]["run"]
    record = Path(run["folder"]) / "run.json"
    changed = msgspec.json.decode(record.read_bytes())
    changed["folder"] = str(tmp_path / "precious")
    record.write_bytes(msgspec.json.encode(changed))
    (user.home / "data" / "yurt.db").unlink()
    assert user("import", "local").code == 0
    assert user("--json", "show", run["id"]).json["data"]["run"]["folder"] == run["folder"]
