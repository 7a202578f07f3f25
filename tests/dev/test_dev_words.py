"""The command lines of `yurt dev` that need no dev node: options of dev ssh, unknown names, the hint about ssh."""

from __future__ import annotations

from typing import Any

import pytest

from tests.user import User
from yurt.dev import ssh as dev_ssh
from yurt.errors import RefusedError


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["a", "--json"], ("a", [], True)),
        (["--json", "a"], ("a", [], True)),
        (["a", "--json", "--", "ls", "--json"], ("a", ["ls", "--json"], True)),
        (["a", "--", "ls", "--json"], ("a", ["ls", "--json"], False)),
        (["--", "make", "--", "x"], ("default", ["make", "--", "x"], False)),
        (["--json", "--", "--", "x"], ("default", ["--", "x"], True)),
        ([], ("default", [], False)),
    ],
)
def test_words_of_dev_ssh(
    user: User, monkeypatch: pytest.MonkeyPatch, words: list[str], expected: tuple[str, list[str], bool]
) -> None:
    asked: list[Any] = []

    def refuse(*given: Any, **_more: Any) -> None:
        asked.extend(given)
        raise RefusedError("no", code="run-not-running")

    monkeypatch.setattr(dev_ssh, "command", refuse)
    done = user.quick("dev", "ssh", *words)
    assert done.code == 5, done
    assert (asked[0], list(asked[1]), done.out.startswith("{")) == expected


def test_two_names(user: User) -> None:
    done = user.quick("dev", "ssh", "a", "ls")
    assert done.code == 2 and "unexpected argument 'ls'" in done.err and "yurt dev ssh a -- ls" in done.err


def test_backups_of_an_unknown_name(user: User) -> None:
    user.environment["HOME"] = str(user.home)
    done = user.quick("dev", "backups", "nosuch", "--context", "local")
    assert done.code == 3 and "there are no backups of dev node 'nosuch' on local" in done.err, done
