"""Records the files of a fetched copy, and finds out later whether they are all still there and unchanged."""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Iterator


def record(target: str) -> bytes:
    """Return the names, sizes and times of all files in a folder, compressed."""
    return zlib.compress(b"\0".join(_entries(target)), 1)


def is_complete(target: str, recorded: bytes) -> bool:
    """Whether a folder still contains every file of a record, unchanged. Other files do not matter."""
    wanted = zlib.decompress(recorded).split(b"\0")
    return set(wanted) - {b""} <= set(_entries(target))


def _entries(target: str) -> Iterator[bytes]:
    folders = [(os.fsencode(target), b"")]
    while folders:
        folder, below = folders.pop()
        try:
            found = os.scandir(folder)
        except OSError:
            continue
        with found:
            for each in found:
                try:
                    if each.is_dir(follow_symlinks=False):
                        folders.append((each.path, b"%s%s/" % (below, each.name)))
                        continue
                    known = each.stat(follow_symlinks=False)
                except OSError:
                    continue
                changed = 0 if each.is_symlink() else known[stat.ST_MTIME]
                yield b"%d %d %s%s" % (known.st_size, changed, below, each.name)
