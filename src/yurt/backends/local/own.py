"""Whether folders are the user's alone, as own.sh checks it. Standard library only: the process of a run imports it.

Answers yes only if that is certain at a glance. Otherwise the caller leaves the decision, and the reason, to own.sh.
"""

from __future__ import annotations

import os
import stat

WRITABLE = stat.S_IWGRP | stat.S_IWOTH


def surely_own(paths: list[str]) -> bool:
    """Return whether yurt's folder on this machine, the first path, and those below it are this user's alone.

    A path that does not exist is safe, except the first one.
    """
    base = paths[0]
    if not os.path.isabs(base) or os.path.realpath(base) != base or not os.path.isdir(base):
        return False
    return _above_are_safe(base) and all(_is_safe(path) for path in paths)


def _is_safe(path: str) -> bool:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return found.st_uid == os.geteuid() and not found.st_mode & WRITABLE and not stat.S_ISLNK(found.st_mode)


def _above_are_safe(base: str) -> bool:
    """Return whether no other user can replace what is in the folders above it. The sticky bit prevents that."""
    folder = base
    while folder != "/":
        folder = os.path.dirname(folder)
        found = os.stat(folder)
        if found.st_uid not in (0, os.geteuid()):
            return False
        if found.st_mode & WRITABLE and not found.st_mode & stat.S_ISVTX:
            return False
    return True
