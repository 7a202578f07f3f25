"""The folder of yurt's connection sockets: a short path, private, and owned by the user; and the locks in it.

A lock file is removed only by a process that holds its lock (`lock_files`); who gets the lock of a removed file takes
that of a new one.
"""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path

from yurt.errors import RefusedError
from yurt.private import make_folder

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
