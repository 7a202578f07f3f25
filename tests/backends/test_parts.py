"""A job without a part of its script ends at once, and says why; it does not keep its node."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.user import User
from yurt.testing.runs import PATIENT


def started(user: User, *words: str) -> Path:
    """Return the folder of a run, or of a sweep of one task, that has ended, as it was before it started."""
    done = user("--json", "run", "--wait", *words, "sh", "-c", "exit 0")
    folder = Path(done.json["data"]["run"]["folder"])
    for name in ("exit.json", "winner", "gen.1", "end.1", "tasks"):
        subprocess.run(["rm", "-rf", folder / name], check=True)
    return folder


def run(folder: Path, *words: str, shell: str) -> tuple[int, dict[str, object], str]:
    """Run job.sh as Slurm does, from a copy of its own; return its exit code, exit.json and its output."""
    copy = folder.parent / "slurm_script"
    if (folder / "job.sh").exists():
        copy.write_text((folder / "job.sh").read_text())
    programs = folder.parent / "bin"
    programs.mkdir(exist_ok=True)
    for each in Path("/usr/bin").iterdir() if shell != "bash" else ():  # job.sh prefers bash
        if each.name != "bash":
            (programs / each.name).symlink_to(each)
    path = str(programs) if shell != "bash" else os.environ["PATH"]
    argv = ["/bin/sh", str(copy), "cafe", *words]
    done = subprocess.run(argv, cwd=folder, env={"PATH": path}, capture_output=True, text=True, timeout=60, check=False)
    found = next(iter([*folder.glob("exit.json"), *folder.glob("tasks/0/exit.json")]))
    logs = "".join(each.read_text() for each in folder.glob("tasks/0/err.log"))
    return done.returncode, json.loads(found.read_text()), done.stderr + logs


@pytest.mark.parametrize("shell", ["bash", "dash"])
@pytest.mark.parametrize("part", ["data", "job.sh", "data is empty", "data is a folder"])
def test_a_run(user: User, part: str, shell: str) -> None:
    folder = started(user)
    name = part.split(maxsplit=1)[0]
    text = (folder / "job.sh").read_text()
    (folder.parent / "slurm_script").write_text(text)
    (folder / name).unlink()
    if part == "data is empty":
        (folder / name).touch()
    elif part == "data is a folder":
        (folder / name).mkdir()
    code, ending, said = run(folder, shell=shell)
    assert code == ending["code"] == 78
    assert f"{folder}/{name}" in str(ending["why"]) and f"{folder}/{name}" in said
    assert ("damaged" in said) == (part == "data is empty")


@pytest.mark.parametrize("shell", ["bash", "dash"])
@pytest.mark.parametrize("part", ["sets", "offsets", "data", "sets is short"])
def test_a_task(user: User, part: str, shell: str) -> None:
    folder = started(user, "--grid", "n=1")
    if part == "sets is short":
        (folder / "sets").write_text("x")
    else:
        (folder / part).unlink()
    code, ending, said = run(folder, "", "0", shell=shell)
    lacking = f"{folder}/tasks/0/set" if part == "sets is short" else f"{folder}/{part}"
    assert code == ending["code"] == 78 and lacking in str(ending["why"]) and lacking in said


def test_why_shows_it(user: User) -> None:
    user.environment["YURT_LOCAL_CPUS"] = "1"
    first = user("--json", "run", "sh", "-c", PATIENT).json["data"]["run"]
    done = user("--json", "run", "sh", "-c", "exit 0").json["data"]["run"]  # starts after the first
    (Path(done["folder"]) / "data").unlink()
    Path(first["folder"], "go").touch()
    assert user("wait", done["id"]).code == 1
    told = user("why", done["id"]).out
    assert f"{done['folder']}/data, a part of the job script, is missing" in told
    assert f"`yurt retry {done['id']}`" in told
    assert user("retry", done["id"]).code == user("wait", "-").code == 0
