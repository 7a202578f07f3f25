"""What the last snapshot saw, so that unchanged files are not read again: each file's size and times, and its id.

A file lost or damaged costs one reading of everything and nothing else: it carries a check sum.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from yurt.model.digest import checksum

NAME = "seen"

TICK = 2_000_000_000
"""Nanoseconds in which a file may change twice and show one time: the coarsest clock of a file system."""

Mark = tuple[int, int, int, int, int]
Row = tuple[int, int, int, int, int, bytes]


class Seen(msgspec.Struct, array_like=True):
    tree: str = ""
    files: dict[bytes, Row] = {}
    """Path -> mark and id."""
    folders: list[bytes] = []
    """The ids of all folders."""


_decoder = msgspec.msgpack.Decoder(Seen)


def load(store: Path) -> Seen:
    try:
        content = (store / NAME).read_bytes()
        if checksum(content[20:]) == content[:20]:
            return _decoder.decode(content[20:])
    except (OSError, msgspec.DecodeError):
        pass
    return Seen()


def save(store: Path, aside: Path, what: Seen) -> None:
    """Only when all of its objects are in the store. Not synced: what a power cut leaves of it is noticed."""
    content = msgspec.msgpack.encode(what)
    (aside / NAME).write_bytes(checksum(content) + content)
    (aside / NAME).rename(store / NAME)


def mark(about: os.stat_result) -> Mark:
    """What stays the same as long as nobody writes to a file."""
    return about.st_mtime_ns, about.st_ctime_ns, about.st_ino, about.st_size, about.st_mode


def row(about: os.stat_result, id: bytes, now: int) -> Row:
    """A file that was read at `now`; one that might yet change without showing it is read again next time."""
    written, changed, inode, size, mode = mark(about)
    settled = max(about.st_mtime_ns, about.st_ctime_ns) < now - TICK
    return written if settled else -1, changed, inode, size, mode, id
