"""Messages to terminals, which do not count as their use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from yurt.node.dev import terminals


@pytest.fixture
def terminal() -> Iterator[tuple[int, str]]:
    """The master's descriptor and the path of a terminal that was last used in 1970."""
    master, slave = os.openpty()
    path = os.ttyname(slave)
    os.utime(path, (1000, 1000))
    yield master, path
    os.close(slave)
    os.close(master)


def test_a_message_is_no_use_of_a_terminal(terminal: tuple[int, str]) -> None:
    master, path = terminal
    assert terminals.tell("10 minutes left", str(Path(path).parent)) >= 1
    assert b"yurt: 10 minutes left" in os.read(master, 1000)
    assert os.stat(path).st_mtime == os.stat(path).st_atime == 1000


def test_output_is_use(terminal: tuple[int, str]) -> None:
    _master, path = terminal
    with open(path, "w") as stream:
        stream.write("progress\n")
    assert terminals.last_use(str(Path(path).parent)) > 1000


def test_a_folder_without_terminals(tmp_path: Path) -> None:
    (tmp_path / "3").touch()
    assert terminals.last_use(str(tmp_path)) == 0 and terminals.tell("hello", str(tmp_path)) == 0
