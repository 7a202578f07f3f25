"""Asks a site what the last look at it asked, while Python still loads the rest of yurt.

A look leaves its question behind; the next `yurt ps` sends it before anything else is imported, through a connection
that is open, or not at all. When the real question comes and is the same, the answer is on its way or here. If it is
another, the early answer is thrown away: a look changes nothing. Imports nothing but what Python has loaded anyway.
"""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Sequence

PIPE = 1 << 16
"""A question must fit into a pipe, for nobody may be reading yet."""

PATIENCE = 20.0
"""Seconds without a byte after which an early answer is given up, and the question asked in the usual way."""

_SET_PIPE_SIZE = 1031

_asked: list[_Asked] = []
"""The one question asked ahead, until its answer is fetched."""


class _Asked:
    """A question under way: its key, how its answer is framed, and the process that carries it."""

    def __init__(self, key: bytes, frame: tuple[bytes, bytes], argv: list[str], question: bytes) -> None:
        self.key, self.frame = key, frame
        given, give = os.pipe()
        self.out, out = os.pipe()
        try:
            import fcntl

            fcntl.fcntl(self.out, _SET_PIPE_SIZE, 1 << 20)
        except (ImportError, OSError):
            pass  # a smaller pipe only makes the answer wait
        null = os.open(os.devnull, os.O_WRONLY)
        actions = [(os.POSIX_SPAWN_DUP2, given, 0), (os.POSIX_SPAWN_DUP2, out, 1), (os.POSIX_SPAWN_DUP2, null, 2)]
        try:
            self.pid = os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions, setpgroup=0)
            os.write(give, question)
        finally:
            for each in (given, give, out, null):
                os.close(each)


def begin(arguments: Sequence[str]) -> None:
    """Send the question that was left behind, if this is a call that will want its answer."""
    if "ps" not in arguments[:4] or any(each in ("--cached", "--help", "-h", "--watch") for each in arguments):
        return
    try:
        with open(_file(), "rb") as file:
            key, socket, frame, argv, question = marshal.load(file)
        if os.path.exists(socket):
            _asked.append(_Asked(key, frame, argv, question))
    except (OSError, ValueError, EOFError, TypeError):
        return


def answer(key: bytes) -> tuple[tuple[bytes, bytes], bytes] | None:
    """How the early answer to a question is framed, and all of it; None if that was not asked, or nobody answered."""
    early = next((each for each in _asked if each.key == key), None)
    if early is None:
        return None
    _asked.remove(early)
    parts = []
    try:
        while part := _read(early.out):
            parts.append(part)
    except TimeoutError:
        os.kill(early.pid, 9)
        parts = []
    os.close(early.out)
    _pid, status = os.waitpid(early.pid, 0)
    return (early.frame, b"".join(parts)) if status == 0 else None


def _read(descriptor: int) -> bytes:
    import select

    if not select.select([descriptor], [], [], PATIENCE)[0]:
        raise TimeoutError
    return os.read(descriptor, 1 << 20)


def leave(key: bytes, socket: str, frame: tuple[bytes, bytes], argv: Sequence[str], question: bytes) -> None:
    """Keep a question for the next call."""
    file = _file()
    if len(question) >= PIPE or not os.path.isdir(os.path.dirname(file)):
        return
    aside = f"{file}.{os.getpid()}"
    try:
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            marshal.dump((key, socket, frame, list(argv), question), stream)
        os.replace(aside, file)
    except OSError:
        return


def forget() -> None:
    """The next question will be another one, or none: nothing is to be asked ahead."""
    try:
        os.unlink(_file())
    except OSError:
        return


def _file() -> str:
    home = os.environ.get("YURT_DATA_HOME")
    if not home:
        home = os.path.join(os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share"), "yurt")
    return os.path.join(home, f"ahead-{sys.version_info.minor}")
