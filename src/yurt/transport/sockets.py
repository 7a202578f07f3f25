"""The folder of yurt's connection sockets: a short path, private, and owned by the user; and the locks in it.

A lock file is removed only by a process that holds its lock (`lock_files`); who gets the lock of a removed file takes
that of a new one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import time
from pathlib import Path

from yurt.errors import RefusedError
from yurt.private import make_folder

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
        if has_name(file, descriptor):
            os.unlink(file)
    finally:
        os.close(descriptor)


def _is_lock(name: str) -> bool:
    """Return whether it is the name of a connection's socket with the ending of a lock."""
    stem, _, ending = name.partition(".")
    return stem.isalnum() and (ending == "lock" or (ending[:4] == "slot" and ending[4:].isdigit()))


LONGEST = 80
"""Maximum length. ssh appends a random suffix when it creates a socket; the path must stay below 104 characters."""


def folder() -> Path:
    """Return $YURT_RUNTIME_DIR, else a folder in $XDG_RUNTIME_DIR, else one in /tmp; create it with mode 0700.

    RefusedError if it cannot be created or is not private.
    """
    named = os.environ.get("YURT_RUNTIME_DIR")
    session = os.environ.get("XDG_RUNTIME_DIR")
    candidates = [Path(named)] if named else [Path(session) / "yurt"] if session and Path(session).is_dir() else []
    fallback = Path(f"/tmp/yurt-{os.getuid()}")
    chosen = next((each for each in candidates if len(str(each)) < LONGEST - 16), fallback)
    try:
        make_folder(chosen)
    except OSError as error:
        raise RefusedError(
            f"cannot create the folder {chosen} for connection sockets: {error.strerror}",
            code="runtime-unsafe",
            hint=f"use another folder: `export YURT_RUNTIME_DIR={Path.home()}/.yurt-run`",
        ) from None
    found = chosen.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise RefusedError(
            f"{chosen} is not a private folder owned by you, so yurt cannot create connection sockets in it",
            code="runtime-unsafe",
            hint=f"remove it, or use another folder: `export YURT_RUNTIME_DIR={Path.home()}/.yurt-run`",
        )
    return chosen


def lock(file: str) -> int | None:
    """Lock a file, which is created if absent. Return its descriptor, to be closed; None if it is locked."""
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if has_name(file, descriptor):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # another process has just removed it


def has_name(file: str, descriptor: int) -> bool:
    """Return whether an open file still has its name."""
    try:
        return os.path.samestat(os.stat(file), os.fstat(descriptor))
    except FileNotFoundError:
        return False
