"""launch.sh for sweeps that wait for a home sync: their groups are found again by their comments, and marked once."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from yurt.backends import scripts
from yurt.backends.job import script

SHELLS = ["dash", "bash --posix"]


def launch(
    home: Path, start: str, queue: str, *, shell: str = "dash", sync: str = "yes"
) -> tuple[list[str], list[str]]:
    """Submit groups of a sweep; return what launch.sh prints, and the calls of sbatch."""
    programs = home / "bin"
    programs.mkdir(exist_ok=True)
    for name, does in {"squeue": f"cat {home}/queue", "sbatch": f'echo "$*" >> {home}/calls; echo 99'}.items():
        (programs / name).write_text(f"#!/bin/sh\n{does}\n")
        (programs / name).chmod(0o755)
    (home / "queue").write_text(f"ARRAY_JOB_ID COMMENT\n{queue}")
    (home / "calls").write_text("")
    state = f"id=s1 start='{start}' sync={sync} nonce=n hold='' env='' shares='' mask=022\n"
    options = "--hold --comment='home_sync yurt:s1'" if sync else "--comment=yurt:s1"
    text = (
        scripts.plain_slurm() + script.gate() + scripts.text("env_state.sh", "job") + scripts.text("launch.sh", "slurm")
    )
    done = subprocess.run(
        [*shell.split(), "-c", f"{text}\n{state}find_job\nlaunch --partition=main {options}\n"],
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
        cwd=home,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines(), (home / "calls").read_text().splitlines()


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("mark", ["", "home_sync ", "home_synced ", "race_wait "])
def test_a_group_is_submitted_once(tmp_path: Path, shell: str, mark: str) -> None:
    queue = f"7 other\n13 {mark}yurt:s1:1:0:0-2\n14 home_sync yurt:s2:1:3:0-2\n"
    said, calls = launch(tmp_path, "1:0:0-2", queue, shell=shell)
    assert (said, calls) == (["submitted 13 1:0:0-2"], [])


@pytest.mark.parametrize("shell", SHELLS)
def test_only_the_first_start_waits(tmp_path: Path, shell: str) -> None:
    said, (first, later) = launch(tmp_path, "1:0:0-2 2:0:1", "", shell=shell)
    assert said == ["submitted 99 1:0:0-2", "submitted 99 2:0:1"]
    assert "--hold" in first and "--comment=home_sync yurt:s1:1:0:0-2" in first
    assert "--hold" not in later and "--comment=yurt:s1:2:0:1" in later and "--partition=main" in later


def test_a_sweep_that_does_not_wait(tmp_path: Path) -> None:
    _said, (call,) = launch(tmp_path, "1:0:0-2", "13 home_sync yurt:s1:1:3:0-2\n", sync="")
    assert "--hold" not in call and "--comment=yurt:s1:1:0:0-2" in call


def test_one_array_of_a_limited_sweep_runs_at_a_time(tmp_path: Path) -> None:
    """Also behind an array that still waits for a sync."""
    _said, (call,) = launch(tmp_path, "1:3:0-2%2", "13 home_sync yurt:s1:1:0:0-2%2\n")
    assert "--dependency=afterany:13" in call
