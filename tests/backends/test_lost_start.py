"""A lost start leaves its race to others only if it has surely ended, and if no later one can begin on its site."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from yurt.backends import scripts
from yurt.backends.job import script
from yurt.model.state import Ending, read_ending
from yurt.testing.waiting import eventually


def end_lost(folder: Path, start: int = 2, lease: int = 6000) -> str:
    text = script.claimer() + scripts.text("claims.sh") + 'me=$4 && end_lost "$1" "$2" "$3"'
    words = ["sh", "-c", text, "sh", str(folder), str(start), str(lease), f"me.{time.monotonic_ns()}"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()


@pytest.fixture
def lost(tmp_path: Path) -> Path:
    """A run whose first start was lost: its heartbeat has stopped."""
    for name, text in {"winner": "abc.7", "gen.1": "abc.7.0.n1.1.1.b", "beat.1.b": ""}.items():
        (tmp_path / name).write_text(f"{text}\n")
    return tmp_path


def ending(folder: Path) -> Ending:
    found = read_ending((folder / "exit.json").read_text())
    assert found is not None
    return found


def test_it_is_over_when_its_heartbeat_must_have_stopped_it(lost: Path) -> None:
    assert end_lost(lost) == end_lost(lost) == "wait"
    assert (lost / "gen.2").read_text().startswith("raced.7."), "no job makes the next start"
    assert not (lost / "beat.1.b").exists(), "the next heartbeat of the first one fails"
    assert not (lost / "exit.json").exists()
    eventually(lambda: end_lost(lost, lease=1) == "over")
    assert (ending(lost).cause, ending(lost).restarts) == ("raced", 0)
    assert end_lost(lost) == "over"


def test_a_heartbeat_that_goes_on_starts_the_wait_again(lost: Path) -> None:
    assert end_lost(lost) == "wait"
    since = (lost / "beat.1.gone").stat().st_ctime_ns
    (lost / "beat.1.a").write_text("")  # it was being renamed
    assert end_lost(lost) == "wait"
    assert (lost / "beat.1.gone").stat().st_ctime_ns > since and not (lost / "beat.1.a").exists()


@pytest.mark.parametrize("file", ["gen.2", "end.1", "checkpoints/a/1", "exit.json"])
def test_it_may_be_restarted_on_its_site(lost: Path, file: str) -> None:
    """Its next start has begun, its job has decided what follows, or its checkpoints are there."""
    (lost / file).parent.mkdir(parents=True, exist_ok=True)
    (lost / file).write_text("0 done\n")
    assert end_lost(lost) == "keeps"
    assert (lost / "beat.1.b").exists()


def test_a_checkpoint_that_comes_late_changes_nothing(lost: Path) -> None:
    """By then the next start is impossible, and the run would wait for it for ever."""
    assert end_lost(lost) == "wait"
    (lost / "checkpoints").mkdir()
    (lost / "checkpoints/1").write_text("")
    assert end_lost(lost) == "wait"
