"""The command home_sync: a round without arguments, otherwise Unison with these arguments; exit codes of Unison."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.homes.star import Star
from yurt.homes import home_sync_program_command as home_sync_command
from yurt.homes import ledger


@pytest.fixture
def star(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Star:
    return Star(tmp_path, monkeypatch, ["alpha", "beta"])


def home_sync(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """Call the command in this process; return its exit code."""
    monkeypatch.setattr(sys, "argv", ["home_sync", *words])
    with pytest.raises(SystemExit) as raised:
        home_sync_command.main()
    assert isinstance(raised.value.code, int)
    return raised.value.code


def test_without_arguments_all_homes_are_synced(
    star: Star, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    star.write("alpha", "a", "first")
    assert home_sync(monkeypatch) == 0
    assert star.read("beta", "a") == "first"
    assert capfd.readouterr().out.startswith("alpha: 1 change to local, 5 B, ")
    star.write("alpha", "a", "of alpha")
    star.write("local", "a", "mine")
    assert home_sync(monkeypatch) == 1
    assert star.read("alpha", "a") == "of alpha"


def test_arguments_go_to_unison(star: Star, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    star.write("alpha", "a", "x")
    star.write("alpha", "b", "x")
    assert home_sync(monkeypatch, "-testServer") == 0
    printed = capfd.readouterr()
    assert "Connected [" in printed.out + printed.err and "yurt-side" not in printed.err
    assert not (star.roots["local"] / "a").exists()
    assert home_sync(monkeypatch, "-batch", "-path", "a") == 0
    assert (star.roots["local"] / "a").exists() and not (star.roots["local"] / "b").exists()
    assert ledger.read().last("local-alpha") is None, "it was not a sync of everything"
    assert home_sync(monkeypatch, "-batch", "-terse") == 0
    assert star.read("local", "b") == "x"
    assert ledger.read().last_good("local-alpha") is not None
    star.write("alpha", "a", "of alpha")
    star.write("local", "a", "mine")
    capfd.readouterr()
    assert home_sync(monkeypatch, "-batch") == 1
    assert "skipped: a (contents changed on both sides)" in capfd.readouterr().err
    assert home_sync(monkeypatch, "-batch", "-prefer", "alpha") == 0
    assert star.read("local", "a") == "of alpha"


@pytest.mark.parametrize("word", ["-help", "-version"])
def test_what_needs_no_homes(
    word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("YURT_CONFIG_HOME", str(tmp_path))
    real = subprocess.run(["unison", word], capture_output=True, text=True, check=False)
    assert home_sync(monkeypatch, word) == real.returncode
    assert capfd.readouterr().out == real.stdout
    assert home_sync(monkeypatch, "-batch") == 3
    assert capfd.readouterr().err.startswith("home_sync: no homes are in sync yet\n")
