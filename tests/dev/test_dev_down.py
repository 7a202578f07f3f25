"""`yurt dev down` on this machine: Ctrl-C, and two calls at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.user import User
from yurt.dev import down as dev_down
from yurt.dev.ask import ask
from yurt.errors import RefusedError, UnreachableError
from yurt.store import Entry


@pytest.fixture
def node(user: User) -> Iterator[User]:
    """A user with a dev node on this machine."""
    user.environment["HOME"] = str(user.home)
    done = user.quick("dev", "up", "k", "--context", "local")
    assert done.code == 0 and "for `ssh yurt-dev-k`, make this the first line" in done.err, done
    yield user
    user.quick("dev", "down", "k", "--now", "--yes")


def test_ctrl_c_and_a_second_call(node: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_words: Any) -> None:
        raise KeyboardInterrupt

    def too_late(entry: Entry, request: dict[str, Any], progress: Any) -> None:
        assert ask(entry, request, progress)["version"] == 1
        raise RefusedError("job 9 is not running", code="run-not-running")

    monkeypatch.setattr(dev_down, "ask", interrupted)
    done = node.quick("dev", "down", "k")
    assert done.code == 130
    assert done.err == (
        "yurt: interrupted; dev node 'k' may still end by itself after its backup; see `yurt dev status k`\n"
    )
    monkeypatch.setattr(dev_down, "ask", too_late)
    done = node.quick("dev", "down", "k", "--json")
    assert done.code == 0, done
    assert (done.json["data"]["state"], done.json["data"]["version"]) == ("completed", 1)
    assert done.json["warnings"] == []


def test_an_error_of_a_dev_node_that_stays(node: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_words: Any) -> None:
        raise RefusedError("the disk is full", code="site-refused")

    monkeypatch.setattr(dev_down, "ask", refuse)
    done = node.quick("dev", "down", "k")
    assert done.code == 5 and done.err.startswith("yurt: nothing was released: the disk is full\n"), done
    assert "tar -cz . > work.tar.gz`; then `yurt dev down k --now` ends it" in done.err, "first what saves the files"


def test_the_node_may_have_failed(node: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """No command on it works, so none is advised."""

    def refuse(*_words: Any) -> None:
        raise UnreachableError("alpha: cannot run a command in job 9: srun: error: no answer", code="connection-lost")

    monkeypatch.setattr(dev_down, "ask", refuse)
    done = node.quick("dev", "down", "k")
    assert done.code == 4 and done.err.startswith("yurt: nothing was released: dev node 'k': the connection to "), done
    assert "its job ends within minutes, and `yurt dev up k` brings version 1 of " in done.err
    assert "tar -cz" not in done.err and "--now" not in done.err


def test_a_failed_backup_after_a_damaged_one(node: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_words: Any) -> None:
        raise RefusedError("the disk is full", code="site-refused")

    folder = Path(node.quick("dev", "backups", "k", "--json").json["data"]["folder"])
    next(folder.glob("i1-*")).unlink()
    monkeypatch.setattr(dev_down, "ask", refuse)
    done = node.quick("dev", "down", "k")
    assert "hint: v1 is damaged, so its files may be only on " in done.err and "tar -cz . > work" in done.err, done
