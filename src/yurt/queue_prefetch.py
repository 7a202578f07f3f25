"""Sends the last status query of a site again while Python still imports the rest of yurt.

Each query is saved; the next `yurt ps` sends it before anything else is imported, if the connection is open. If yurt
then makes the same query, its answer is already on the way. Otherwise the early answer is discarded, which is safe
because queries are read-only. Imports only modules that Python has loaded anyway.
"""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Callable, Sequence

PIPE = 1 << 16
"""Maximum bytes of a query: it must fit into a pipe, because the reader may not have started."""

_SET_PIPE_SIZE = 1031

_pending: list[_Query] = []
"""The query sent early, until its answer is read."""


class _Query:
    """A query in progress: its key, the markers around its answer, and its process."""

    def __init__(self, key: bytes, frame: tuple[bytes, bytes], argv: list[str], query: bytes) -> None:
        self.key, self.frame = key, frame
        stdin, feed = os.pipe()
        self.out, out = os.pipe()
        try:
            import fcntl

            fcntl.fcntl(self.out, _SET_PIPE_SIZE, 1 << 20)
        except (ImportError, OSError):
            pass  # a smaller pipe only delays the answer
        null = os.open(os.devnull, os.O_WRONLY)
        actions = [(os.POSIX_SPAWN_DUP2, stdin, 0), (os.POSIX_SPAWN_DUP2, out, 1), (os.POSIX_SPAWN_DUP2, null, 2)]
        try:
            self.pid = os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions, setpgroup=0)
            os.write(feed, query)
        finally:
            for each in (stdin, feed, out, null):
                os.close(each)


def begin(arguments: Sequence[str]) -> None:
    """Send the saved query if this command line is a `yurt ps` that will need its answer."""
    if "ps" not in arguments[:4] or any(each in ("--cached", "--help", "-h", "--watch") for each in arguments):
        return
    try:
        with open(_file(), "rb") as file:
            key, socket, frame, argv, query = marshal.load(file)
        if os.path.exists(socket) and not os.path.exists(f"{socket}.silent"):
            _pending.append(_Query(key, frame, argv, query))
    except (OSError, ValueError, EOFError, TypeError):
        return


def answer(
    key: bytes, slow: float, silent: float, on_slow: Callable[[], None]
) -> tuple[tuple[bytes, bytes], bytes] | None:
    """Return the markers and the output of the early answer; None if this query was not sent or failed.

    `on_slow` is called after `slow` seconds without a byte; TimeoutError after `silent` seconds.
    """
    early = next((each for each in _pending if each.key == key), None)
    if early is None:
        return None
    _pending.remove(early)
    parts = []
    try:
        while part := _read(early.out, slow, silent, on_slow):
            parts.append(part)
    except BaseException:
        os.kill(early.pid, 9)
        os.waitpid(early.pid, 0)
        raise
    finally:
        os.close(early.out)
    _pid, status = os.waitpid(early.pid, 0)
    return (early.frame, b"".join(parts)) if status == 0 else None


def _read(descriptor: int, slow: float, silent: float, on_slow: Callable[[], None]) -> bytes:
    import select

    if not select.select([descriptor], [], [], min(slow, silent))[0]:
        on_slow()
        if not select.select([descriptor], [], [], max(0.0, silent - slow))[0]:
            raise TimeoutError
    return os.read(descriptor, 1 << 20)


def save(key: bytes, socket: str, frame: tuple[bytes, bytes], argv: Sequence[str], query: bytes) -> None:
    """Save a query for the next yurt process."""
    file = _file()
    if len(query) >= PIPE or not os.path.isdir(os.path.dirname(file)):
        return
    temporary = f"{file}.{os.getpid()}"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            marshal.dump((key, socket, frame, list(argv), query), stream)
        os.replace(temporary, file)
    except OSError:
        return


def forget() -> None:
    """Delete the saved query: the next one will differ, or there will be none."""
    try:
        os.unlink(_file())
    except OSError:
        return


def _file() -> str:
    home = os.environ.get("YURT_DATA_HOME")
    if not home:
        home = os.path.join(os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share"), "yurt")
    return os.path.join(home, f"ahead-{sys.version_info.minor}")
