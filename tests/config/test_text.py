"""Configuration files that are no configuration: rejected by size, kind and depth, quickly and with a sentence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.user import User, said

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
    assert "it is 1024 MB; the limit is 8 MB" in said(user("run", option, "huge.py", "true"), 2)


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
