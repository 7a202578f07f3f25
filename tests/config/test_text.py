"""Configuration files that are no configuration: rejected by size, kind and depth, quickly and with a sentence."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from pathlib import Path

import pytest

from tests.user import User, said
from yurt.config.paths import check_owner
from yurt.errors import UserError

DEEP = {
    "brackets": "contexts: " + "[" * 100_000,
    "braces": "contexts: " + "{a: " * 100_000,
    "items": "- " * 100_000 + "x\n",
    "keys": "? " * 100_000 + "x\n",
    "blocks": "".join(f"{' ' * level}a:\n" for level in range(2000)),
}


def contexts(user: User) -> Path:
    file = user.home / "config" / "contexts.yaml"
    file.parent.mkdir(exist_ok=True)
    return file


@pytest.mark.parametrize("kind", DEEP)
def test_deep_nesting(user: User, kind: str) -> None:
    contexts(user).write_text(DEEP[kind])
    answer = user("context", "list")
    assert answer.code == 2 and "contexts.yaml" in answer.err and "Traceback" not in answer.err


@pytest.mark.parametrize("option", ["--config", "--spec"])
def test_huge_files(user: User, option: str) -> None:
    file = user.project / "huge.py"
    with file.open("wb") as made:
        made.truncate(1 << 30)
    assert "it is 1074 MB; the limit is 8 MB" in said(user("run", option, "huge.py", "true"), 2)


def test_a_pipe_instead_of_contexts(user: User) -> None:
    os.mkfifo(contexts(user))
    assert "it is not a regular file" in said(user("context", "list"), 2)


def test_a_config_from_the_shell(user: User) -> None:
    """`--config <(command)` is a pipe that somebody writes to."""
    read, write = os.pipe()
    os.write(write, b"parameters: {lr: 0.5}\n")
    os.close(write)
    try:
        from yurt.config.text import text_of

        assert text_of(Path(f"/dev/fd/{read}")) == "parameters: {lr: 0.5}\n"
    finally:
        os.close(read)


ME, OTHER = os.geteuid(), os.geteuid() + 4711


@pytest.mark.parametrize(
    ("mode", "owner", "group", "accepted"),
    [
        (0o600, ME, "other", True),
        (0o644, ME, "other", True),
        (0o644, 0, "other", True),
        (0o602, ME, "private", False),
        (0o666, ME, "private", False),
        (0o664, ME, "private", True),
        (0o664, ME, "shared", False),
        (0o664, ME, "other", False),
        (0o600, OTHER, "other", False),
        (0o664, ME, "unknown", False),
    ],
)
def test_who_can_change_a_trusted_file(
    *, mode: int, owner: int, group: str, accepted: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The private group of a user may write, as with umask 002; not if it has other members."""
    groups = {100: ("me", []), 200: ("staff", []), 300: ("me", ["bob"])}
    numbers = {"private": 100, "other": 200, "shared": 300, "unknown": 999}

    def getgrgid(number: int) -> grp.struct_group:
        name, members = groups[number]
        return grp.struct_group((name, "x", number, members))

    primary = numbers[group] if group in ("private", "shared") else 100
    monkeypatch.setattr("grp.getgrgid", getgrgid)
    monkeypatch.setattr("pwd.getpwuid", lambda uid: pwd.struct_passwd(("me", "x", uid, primary, "", "/", "/bin/sh")))
    monkeypatch.delenv("SUDO_UID", raising=False)
    about = os.stat_result((stat.S_IFREG | mode, 1, 1, 1, owner, numbers[group], 1, 0, 0, 0))
    if accepted:
        check_owner(tmp_path, about)
        return
    with pytest.raises(UserError) as refused:
        check_owner(tmp_path, about)
    assert refused.value.code == "config-unsafe"
    assert ("chown" if owner == OTHER else "chmod go-w") in refused.value.hint
