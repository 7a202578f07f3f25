"""The command lines of `yurt dev` that need no dev node: options of dev ssh, unknown names, the hint about ssh."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from tests.user import User
from yurt.errors import RefusedError
from yurt.verbs import dev_ssh


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


def test_noise_of_ssh_is_not_shown() -> None:
    noise = "mux_client_request_session: session request failed: Session open refused by peer\\n"
    noise += (
        "kex_exchange_identification: Connection closed by remote host\\nConnection closed by UNKNOWN port 65535\\r\\n"
    )
    script = f"printf '{noise}' >&2; echo Permission denied >&2; cat"
    become = f"import os; os.execvp('sh', ['sh', '-c', {script!r}])"
    program = f"from yurt.cli.dev_connect import hide_noise as hide; hide(); {become}"
    done = subprocess.run([sys.executable, "-c", program], input=b"in", capture_output=True, check=False, timeout=30)
    assert (done.stdout, done.stderr) == (b"in", b"Permission denied\n")
