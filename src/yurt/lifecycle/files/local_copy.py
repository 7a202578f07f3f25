"""Records the files of a fetched copy, and finds out later whether they are all still there and unchanged."""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Iterator

PIECE = 1 << 20
"""Bytes of a record that are unpacked at a time."""


def record(target: str) -> bytes:
    """Return the names, sizes and times of all files in a folder, compressed."""
    packer, packed = zlib.compressobj(1), bytearray()
    for each in _entries(target):  # there may be a million
        packed += packer.compress(b"%s\0" % each)
    return bytes(packed + packer.flush())


def is_complete(target: str, recorded: bytes) -> bool:
    """Whether a folder still contains every file of a record, unchanged. Other files do not matter."""
    missing = {hash(each) for each in _recorded(recorded)}  # hashes take a third of the memory
    for each in _entries(target):
        missing.discard(hash(each))
    return not missing


def _recorded(recorded: bytes) -> Iterator[bytes]:
    """Yield the entries of a record."""
    unpacker, rest = zlib.decompressobj(), b""
    while recorded:
        *entries, rest = (rest + unpacker.decompress(recorded, PIECE)).split(b"\0")
        yield from filter(None, entries)
        recorded = unpacker.unconsumed_tail
    *entries, rest = (rest + unpacker.flush()).split(b"\0")
    yield from filter(None, [*entries, rest])


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
