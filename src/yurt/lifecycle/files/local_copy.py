"""Records the files of a fetched copy, and finds out later whether they are all still there and unchanged."""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Iterator


def record(target: str) -> bytes:
    """Return the names, sizes and times of all files in a folder, compressed."""
    return zlib.compress(b"\0".join(_entries(target)))


def is_complete(target: str, recorded: bytes) -> bool:
    """Whether a folder still contains every file of a record, unchanged. Other files do not matter."""
    wanted = zlib.decompress(recorded).split(b"\0")
    return set(wanted) - {b""} <= set(_entries(target))


def _entries(target: str) -> Iterator[bytes]:
    root = os.fsencode(target)
    for folder, folders, names in os.walk(root):
        for name in (*names, *folders):
            path = folder + b"/" + name
            try:
                found = os.lstat(path)
            except OSError:
                continue
            if not stat.S_ISDIR(found.st_mode):
                changed = 0 if stat.S_ISLNK(found.st_mode) else int(found.st_mtime)
                yield b"%d %d %s" % (found.st_size, changed, path[len(root) + 1 :])
