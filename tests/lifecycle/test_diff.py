"""`yurt diff` of real local runs: settings, code, and code that is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pexpect
import pytest

from tests.calls import YURT
from tests.user import User, said


def make(user: User, *words: str) -> str:
    done = user.quick("--json", "run", "--wait", *words)
    assert done.code in (0, 1), done
    found: str = done.json["data"]["run"]["id"]
    return found


def printed(user: User, *words: str, **more: str) -> str:
    """Return the output of diff; files may contain bytes that are not text."""
    environment = {**os.environ, **user.environment, **more}
    done = subprocess.run([YURT, "diff", *words], env=environment, capture_output=True, check=True)
    assert done.stderr == b""
    return done.stdout.decode(errors="surrogateescape")


@pytest.fixture
def runs(user: User) -> tuple[str, str]:
    """Two runs of a project with many changes between them."""
    project = user.project
    strange = project / os.fsdecode(b'tab\t line\n quote" \xc3\xbc \xff')
    (project / "train.py").write_text("import yurt\nyurt.log(step=3, loss=0.5)\n")
    (project / "image.bin").write_bytes(b"\0\1\2")
    (project / "moved.txt").write_text("".join(f"{number}\n" for number in range(50)))
    (project / "gone.txt").write_text("gone\n")
    strange.write_text("before\n")
    first = make(user, "train.py", "--", "--lr", "0.1", "--deep", "1")
    (project / "train.py").write_text("import yurt\nyurt.log(step=4, loss=0.25)\nraise SystemExit(3)\n")
    (project / "train.py").chmod(0o755)
    (project / "image.bin").write_bytes(b"\0\1\3")
    (project / "deep").mkdir()
    (project / "moved.txt").rename(project / "deep" / "moved.txt")
    (project / "gone.txt").unlink()
    (project / "latin").write_bytes(b"caf\xe9\n")
    strange.write_text("after\n")
    second = make(user, "--name", "second", "--var", "A=it's", "--time", "5m", "train.py", "--", "--lr", "0.01")
    return first, second


def test_everything_that_differs(user: User, runs: tuple[str, str]) -> None:
    out = printed(user, *runs)
    text, _, patch = out.partition("\n\n")
    lines = {" ".join(line.split()) for line in text.splitlines()}
    assert {
        f"{runs[0]} {runs[1]}",
        "command train.py --lr 0.1 --deep 1 train.py --lr 0.01",
        "name - second",
        "lr 0.1 0.01",
        "deep 1 -",
        "variables.A - it's (flag)",
        "minutes - 5 (flag)",
        "state completed failed",
        "exit_code 0 3",
        "metrics.loss 0.5 0.25",
        "train.py: +2 -1, mode 644 to 755",
        "image.bin: binary",
        "moved.txt => deep/moved.txt: renamed",
        "gone.txt: removed, +0 -1",
        "latin: added, +1 -0",
    } <= lines
    assert not [line for line in lines if line.startswith(("context", "user", "host", "yurt_version"))], (
        "equal values are shown"
    )
    assert "+yurt.log(step=4, loss=0.25)\n" in patch and "\nBinary files a/image.bin and b/image.bin differ\n" in patch
    assert "\033" not in out


def test_git_applies_the_patch(user: User, runs: tuple[str, str], tmp_path: Path) -> None:
    """The output is a real patch with the bytes of the files."""
    patch = printed(user, *runs).encode(errors="surrogateescape").partition(b"\n\n")[2]
    kept = [part for part in patch.split(b"diff --git ")[1:] if b"Binary files" not in part]
    first, second = (checkout(user, run, tmp_path / run) for run in runs)
    for folder in (first, second):
        (folder / "image.bin").unlink()
    text = b"".join(b"diff --git " + part for part in kept)
    subprocess.run(["git", "apply", "-"], cwd=first, input=text, check=True)
    assert contents(first) == contents(second) and len(contents(first)) == 4


def checkout(user: User, run: str, folder: Path) -> Path:
    """Copy the code of a run from the local site."""
    tree = user.quick("show", run, "--json").json["data"]["run"]["code"]["tree"]
    (there,) = user.home.glob(f"data/projects/*/snapshots/{tree}")
    shutil.copytree(there, folder)
    subprocess.run(["chmod", "-R", "u+w", str(folder)], check=True)
    return folder


def contents(folder: Path) -> dict[bytes, tuple[bytes, int]]:
    return {
        os.fsencode(each.relative_to(folder)): (each.read_bytes(), each.stat().st_mode & 0o100)
        for each in folder.rglob("*")
        if each.is_file()
    }


def test_as_json(user: User, runs: tuple[str, str]) -> None:
    data: dict[str, Any] = user.quick("diff", *runs, "--json").json["data"]
    assert (data["left"], data["right"], data["same"]) == (*runs, False)
    rows = {(row["part"], row["key"]): row for row in data["rows"]}
    assert rows["parameters", "deep"] == {"part": "parameters", "key": "deep", "same": False, "left": 1}
    assert rows["environment", "variables.A"]["right_source"] == "flag"
    assert not any(row["same"] for row in data["rows"])
    changes = {change["path"]: change for change in data["code"]["changes"]}
    assert changes["train.py"] == {
        "path": "train.py",
        "kind": "changed",
        "lines_added": 2,
        "lines_removed": 1,
        "mode": "644 to 755",
    }
    assert changes["image.bin"] == {"path": "image.bin", "kind": "changed"}
    assert changes["deep/moved.txt"]["before"] == "moved.txt" and changes["deep/moved.txt"]["kind"] == "renamed"
    assert changes['tab\t line\n quote" ü \\xff']["lines_added"] == 1
    assert {change["kind"] for change in changes.values()} == {"added", "removed", "changed", "renamed"}
    assert "caf\\xe9" in data["code"]["patch"]
    short = user.quick("diff", *runs, "--json", "--stat").json["data"]["code"]
    assert short["patch"] == "" and short["changes"] == data["code"]["changes"]


def test_stat_and_all(user: User, runs: tuple[str, str]) -> None:
    short = user.quick("diff", *runs, "--stat").out
    assert "train.py: +2 -1" in short and "@@" not in short and "context" not in short
    lines = [" ".join(line.split()) for line in user.quick("diff", *runs, "--stat", "--all").out.splitlines()]
    assert "context local local" in lines and "lr 0.1 0.01" in lines
    everything = user.quick("diff", *runs, "--all", "--json").json["data"]["rows"]
    assert {row["same"] for row in everything} == {True, False}


def test_runs_in_reverse_order(user: User, runs: tuple[str, str]) -> None:
    changes = user.quick("diff", runs[1], runs[0], "--json").json["data"]["code"]["changes"]
    kinds = {change["path"]: change["kind"] for change in changes}
    assert (kinds["latin"], kinds["gone.txt"]) == ("removed", "added")


def test_a_run_and_itself(user: User, runs: tuple[str, str]) -> None:
    done = user.quick("diff", runs[0], runs[0])
    assert (done.code, done.out) == (0, f"{runs[0]} and {runs[0]}: no differences\n")
    assert user.quick("diff", "-", runs[1], "--json").json["data"]["same"] is True


def test_colour_only_on_a_terminal(user: User, runs: tuple[str, str]) -> None:
    environment = {**os.environ, **user.environment, "TERM": "xterm"}
    environment.pop("NO_COLOR", None)
    for more, coloured in ({}, True), ({"NO_COLOR": "1"}, False):
        child = pexpect.spawn(YURT, ["diff", *runs], env={**environment, **more}, timeout=120, dimensions=(40, 80))
        shown = child.read()
        child.close()
        assert b"raise SystemExit" in shown and child.exitstatus == 0
        assert (b"\033[31m0.1 " in shown, b"\033[32m+" in shown) == (coloured, coloured)


def test_the_git_configuration_of_the_user_has_no_effect(user: User, runs: tuple[str, str]) -> None:
    before = printed(user, *runs)
    (user.home / ".gitconfig").write_text(
        "[diff]\nnoprefix = true\nexternal = false\nrenames = false\ncontext = 0\n[color]\nui = always\n"
        "[core]\nquotePath = true\nattributesFile = ~/attributes\npager = false\n"
    )
    assert printed(user, *runs, HOME=str(user.home), GIT_EXTERNAL_DIFF="false") == before


def test_runs_of_two_projects(user: User) -> None:
    """Each project has its own code store."""
    first = make(user, "train.py")
    other = user.home / "another"
    other.mkdir()
    (other / "train.py").write_text("print('trained')\nprint('twice')\n")
    second = user("--json", "run", "train.py", cwd=other).json["data"]["run"]["id"]
    data = user.quick("diff", first, second, "--json").json["data"]
    assert data["code"]["changes"] == [{"path": "train.py", "kind": "changed", "lines_added": 1, "lines_removed": 0}]
    assert "project" in [row["key"] for row in data["rows"]]


def test_missing_code_is_reported(user: User, runs: tuple[str, str]) -> None:
    shutil.rmtree(user.home / "data" / "code")
    done = user.quick("diff", *runs)
    assert (done.code, done.err) == (0, "")
    assert f"  the code of run {runs[0]} is no longer on this machine\n" in done.out
    assert "lr" in done.out and "diff --git" not in done.out
    code = user.quick("diff", *runs, "--json").json["data"]["code"]
    assert (code["same"], code["changes"]) == (False, []) and runs[0] in code["unknown"]


def test_partly_missing_code(user: User, runs: tuple[str, str]) -> None:
    for file in user.home.glob("data/code/*.git/objects/??/*"):
        kind = subprocess.run(
            ["git", f"--git-dir={file.parents[2]}", "cat-file", "-t", file.parent.name + file.name],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        if kind == "blob":
            file.chmod(0o600)
            file.unlink()
    done = user.quick("diff", *runs)
    assert done.code == 0 and "git diff-tree failed" in done.out and "lr" in done.out


def test_without_a_snapshot(user: User) -> None:
    first = make(user, "train.py")
    second = make(user, "--no-snapshot", "train.py")
    done = user.quick("diff", first, second)
    assert done.code == 0 and f"run {second} has no code snapshot" in done.out


def test_wrong_usage(user: User, runs: tuple[str, str]) -> None:
    assert said(user.quick("diff", runs[0], "nosuch"), 3) == "run 'nosuch' not found"
    assert "missing argument" in said(user.quick("diff", runs[0]), 2)


def test_a_run_that_still_runs(user: User) -> None:
    first = make(user, "train.py")
    done = user.quick("--json", "run", "sh", "-c", 'until [ -e "$YURT_RUN_DIR/go" ]; do sleep 0.1; done')
    second = done.json["data"]["run"]["id"]
    rows = user.quick("diff", first, second, "--json").json["data"]["rows"]
    state = next(row for row in rows if row["key"] == "state")
    assert state["left"] == "completed" and state["right"] in ("running", "queued", "starting")
    (Path(done.json["data"]["run"]["folder"]) / "go").touch()
    assert user.quick("wait", second).code == 0
