"""Ends programs when this process ends, even if it is killed: they would go on, or keep the user's terminal."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

GUARD = "trap '' INT QUIT HUP TERM; read -r _line || kill -TERM \"$0\""
"""Reads from a pipe that only yurt can write to: it closes without a line if yurt is killed."""


@contextlib.contextmanager
def guarded(process: int) -> Iterator[None]:
    """While the block runs, a process, or a process group if its number is negative, ends with this process."""
    guard, line = _start(process)
    try:
        yield
    finally:
        with contextlib.suppress(BrokenPipeError):
            os.write(line, b"\n")
        os.close(line)
        with contextlib.suppress(ChildProcessError):  # a program that uses the API may ignore the end of its children
            os.waitpid(guard, 0)


def _start(process: int) -> tuple[int, int]:
    """Start a guard in a process group of its own. Return it, and the pipe that it reads from.

    Without subprocess, which takes longer to import than a transfer to start.
    """
    theirs, line = os.pipe()
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    actions = [(os.POSIX_SPAWN_DUP2, each, at) for at, each in enumerate((theirs, null, null))]
    try:
        argv = ["sh", "-c", GUARD, str(process)]
        return os.posix_spawnp("sh", argv, os.environ, file_actions=actions, setpgroup=0), line
    except BaseException:
        os.close(line)
        raise
    finally:
        os.close(theirs)
        os.close(null)
