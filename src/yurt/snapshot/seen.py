"""Cache of the last snapshot, so that unchanged files are not read again: each file's size and times, and its id.

The cache has a checksum. If it is lost or damaged, the next snapshot reads all files; nothing else is lost.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from yurt import private
from yurt.model.digest import checksum

NAME = "seen"

TICK = 2_000_000_000
"""Coarsest timestamp resolution of a file system, in ns: a file may change twice within it and show one time."""

UNSETTLED = -1
"""The time of a file that may have changed after it was read; it is read again."""

Mark = tuple[int, int, int, int, int]
Row = tuple[int, int, int, int, int, bytes]


class Seen(msgspec.Struct, array_like=True):
    tree: str = ""
    files: dict[bytes, Row] = {}
    """Path -> mark and object id."""
    folders: list[bytes] = []
    """Object ids of all folders."""
    private: dict[bytes, Mark] | None = None
    """Files that are left out because they contain private keys; None in a cache that did not look for them."""


_decoder = msgspec.msgpack.Decoder(Seen)


def load(store: Path) -> Seen:
    try:
        content = (store / NAME).read_bytes()
        if checksum(content[20:]) == content[:20]:
            found = _decoder.decode(content[20:])
            return found if found.private is not None else Seen()
    except (OSError, msgspec.DecodeError):
        pass
    return Seen()


def since(store: Path) -> int:
    """Return the time, in ns, since which a folder may have changed after the last snapshot; 0 if there was none."""
    try:
        return os.stat(store / NAME).st_mtime_ns - TICK
    except OSError:
        return 0


def save(store: Path, aside: Path, what: Seen) -> None:
    """Save the cache, once all of its objects are in the store. Not synced: the checksum detects a damaged file."""
    content = msgspec.msgpack.encode(what)
    private.write(aside / NAME, checksum(content) + content)
    (aside / NAME).rename(store / NAME)


def mark(about: os.stat_result) -> Mark:
    """Return values that stay the same as long as nobody writes to the file."""
    return about.st_mtime_ns, about.st_ctime_ns, about.st_ino, about.st_size, about.st_mode


def row(about: os.stat_result, id: bytes, now: int) -> Row:
    """Return the row of a file that was read at `now`. A file changed too recently is marked to be read again."""
    written, changed, inode, size, mode = mark(about)
    settled = max(about.st_mtime_ns, about.st_ctime_ns) < now - TICK
    return written if settled else UNSETTLED, changed, inode, size, mode, id
