"""Tests the sh function that closes the gates of tasks: by links of perl, by `ln`, and without links."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from yurt.backends.job import script

TOOLS = ("cat", "mkdir", "xargs", "uname", "dd", "ln", "rm", "mv", "grep", "sleep")


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """A sweep: task 1 has ended, task 2 runs, task 3 has a share of a secret; the others have not started."""
    tasks = tmp_path / "sweeps" / "s" / "tasks"
    for number in (1, 2, 3):
        (tasks / str(number)).mkdir(parents=True)
    (tasks / "1" / "exit.json").write_text('{"code":0}\n')
    (tasks / "2" / "winner").write_text("cafe.77\n")
    (tasks / "3" / "secret.1").write_text("share")
    return tasks.parent


def close(sweep: Path, numbers: str, path: str) -> list[str]:
    text = script.closer() + 'failed=; close_tasks "$1"; [ -z "$failed" ]'
    argv = ["/bin/sh", "-c", text, "sh", str(sweep)]
    done = subprocess.run(argv, input=numbers, env={"PATH": path}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("how", ["perl", "ln", "no links"])
def test_gates(sweep: Path, tmp_path: Path, how: str) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in (*TOOLS, *(["perl"] if how == "perl" else [])):
        found = shutil.which(name)
        if found is None:
            pytest.skip(f"needs the program {name}")
        (tools / name).symlink_to(found)
    if how == "no links":
        (sweep / "no-links").touch()
    expected = ["0 cancelled", "1 ended", "2 cafe.77", "3 cancelled", "4 cancelled"]
    assert close(sweep, "0\n1\n2\n3\n4\n", str(tools)) == expected
    assert close(sweep, "0\n1\n2\n3\n4\n", str(tools)) == expected, "a retry"
    assert (sweep / "tasks" / "2" / "cancel").exists()
    assert not (sweep / "tasks" / "3" / "secret.1").exists()
    assert not [each for each in sweep.rglob("winner.*") if each.name != "winner.d"]
    assert sorted(each.name for each in (sweep / "tasks").iterdir()) == list("01234")


def test_no_tasks(sweep: Path) -> None:
    assert close(sweep, "", "/usr/bin:/bin") == []
