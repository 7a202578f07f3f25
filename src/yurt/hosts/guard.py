"""Ends a process when this one ends, even if it is killed: an ssh that outlives yurt would keep the user's terminal."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator

GUARD = "trap '' INT QUIT HUP TERM; read -r _line || kill -TERM \"$0\""
"""Reads from a pipe that only yurt can write to: it closes without a line if yurt is killed."""


@contextlib.contextmanager
def guarded(process: int) -> Iterator[None]:
    """While the block runs, a process, or a process group if its number is negative, ends with this process."""
    guard = subprocess.Popen(
        ["sh", "-c", GUARD, str(process)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        with contextlib.suppress(BrokenPipeError):
            guard.communicate(b"\n")
