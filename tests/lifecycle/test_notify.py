"""The user is notified once that a run has finished, by the first yurt that sees it."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.calls import YURT, call
from yurt.testing.waiting import eventually


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for kind in ("config", "data"):
        monkeypatch.setenv(f"YURT_{kind.upper()}_HOME", str(tmp_path / kind))
    (tmp_path / "proj").mkdir()
    monkeypatch.chdir(tmp_path / "proj")
    return tmp_path


def settled(file: Path, program: Path | None = None) -> str:
    """Content of a file after the process that writes it has finished."""
    eventually(file.exists)
    eventually(lambda: not running(str(program or file)))
    return file.read_text()


def running(words: str) -> list[str]:
    """Processes with this text in their arguments."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if words.encode() in each.read_bytes():
                found.append(each.parent.name)
    return found


def test_by_a_command_and_once(home: Path) -> None:
    told = home / "told"
    command = f'echo "$YURT_RUN_NAME $YURT_STATE $YURT_EXIT_CODE $YURT_REASON" >> {told}'
    assert call("run", "--name", "it's $(me)", "--notify-with", command, "sh", "-c", "exit 3").code == 0
    eventually(lambda: list(home.glob("data/projects/*/runs/*/exit.json")))
    lookers = [subprocess.Popen([YURT, "ps", "-q"], stdout=subprocess.DEVNULL) for _each in range(4)]
    assert [each.wait() for each in lookers] == [0] * 4
    assert settled(told) == "it's $(me) failed 3 exit code 3\n"
    call("ps")
    assert settled(told).count("\n") == 1


def test_on_the_desktop(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = home / "bin"
    tools.mkdir()
    (tools / "notify-send").write_text(f'#!/bin/sh\nfor word in "$@"; do echo "$word"; done > {home}/shown\n')
    (tools / "notify-send").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    assert call("run", "--notify", "--name=--help", "--wait", "true").code == 0
    assert settled(home / "shown", tools / "notify-send") == "--app-name=yurt\n--\n--help on local: completed\n\n"


def test_also_for_a_cancelled_run_but_not_for_a_refused_one(home: Path) -> None:
    told = home / "told"
    assert call("run", "--notify-with", f"echo $YURT_STATE >> {told}", "sleep", "60").code == 0
    assert call("cancel", "-").code == 0
    assert call("wait", "-").code != 0
    assert settled(told) == "cancelled\n"
    assert call("run", "--gpus", "99", "--notify-with", f"echo no >> {told}", "true").code != 0
    call("ps")
    assert settled(told) == "cancelled\n"


def test_a_command_that_fails_harms_nothing() -> None:
    assert call("run", "--notify-with", "no-such-program", "--wait", "true").code == 0
    assert call("ps").code == 0
