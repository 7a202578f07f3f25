"""The folder of yurt's connection sockets: short, private, and only trusted if it is ours."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from yurt.errors import RefusedError

LONGEST = 80
"""ssh appends a random part while it makes a socket; the whole must stay under 104 characters."""


def folder() -> Path:
    """$YURT_RUNTIME_DIR, else the session's runtime folder, else one in /tmp. Made if absent, 0700."""
    named = os.environ.get("YURT_RUNTIME_DIR")
    session = os.environ.get("XDG_RUNTIME_DIR")
    candidates = [Path(named)] if named else [Path(session) / "yurt"] if session and Path(session).is_dir() else []
    fallback = Path(f"/tmp/yurt-{os.getuid()}")
    chosen = next((each for each in candidates if len(str(each)) < LONGEST - 16), fallback)
    try:
        chosen.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise RefusedError(
            f"no folder for connections can be made at {chosen}: {error.strerror}",
            code="runtime-unsafe",
            hint=f"name another: export YURT_RUNTIME_DIR={Path.home()}/.yurt-run",
        ) from None
    found = chosen.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise RefusedError(
            f"{chosen} is not a private folder of yours, so no connection can be kept there",
            code="runtime-unsafe",
            hint=f"remove it, or name another: export YURT_RUNTIME_DIR={Path.home()}/.yurt-run",
        )
    return chosen
