"""Removes lock files in the folder of connection sockets that nobody needs any more; see `sockets.lock`."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path

from yurt.transport import sockets

DAY = 86400.0


def collect(folder: Path, *, age: float = DAY) -> None:
    """Remove the lock files of closed connections that are older than `age`, in seconds, and that nobody holds."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if _is_lock(entry.name)]
    for name in names:
        file = folder / name
        with contextlib.suppress(OSError):  # it is locked, or another process removes it
            if time.time() - file.lstat().st_mtime >= age and not os.path.lexists(file.with_suffix("")):
                _remove(str(file))


def _remove(file: str) -> None:
    descriptor = os.open(file, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if sockets.has_name(file, descriptor):
            os.unlink(file)
    finally:
        os.close(descriptor)


def _is_lock(name: str) -> bool:
    """Return whether it is the name of a connection's socket with the ending of a lock."""
    stem, _, ending = name.partition(".")
    return stem.isalnum() and (ending == "lock" or (ending[:4] == "slot" and ending[4:].isdigit()))
