"""The folder of yurt's connection sockets: a short path, private, and owned by the user."""

from __future__ import annotations

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
