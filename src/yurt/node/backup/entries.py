"""What is known of one file, folder or link of a workspace, and its form in manifests."""

import os
import stat
from typing import Any, Dict, List, NamedTuple, Tuple

Key = Tuple[int, int, int, int, int, int]
"""mode, size, mtime_ns, inode, number of links, ctime_ns: a file has changed if any of them differs."""

MODE, SIZE, MTIME, INODE, LINKS, CTIME = range(6)

UNSURE = -1
"""In place of a ctime."""

ROOT = b"."
"""The path of the workspace itself."""


class Entry(NamedTuple):
    """One path of a version."""

    key: Key
    pack: str = ""
    """The pack that holds the content of a regular file."""
    extra: bytes = b""
    """A file's name in its pack if it is not its path; a link's target; the extended attributes of a folder."""
    group: bytes = b""
    """The first path of the same inode, if the workspace has several."""


def key_of(found: os.stat_result) -> Key:
    """Return the key of what lstat returned. The size and links of a folder follow from its content."""
    if stat.S_ISDIR(found.st_mode):
        return (found.st_mode, 0, found.st_mtime_ns, found.st_ino, 1, found.st_ctime_ns)
    return (
        found.st_mode,
        found.st_size,
        found.st_mtime_ns,
        found.st_ino,
        found.st_nlink,
        found.st_ctime_ns,
    )


def unsure(key: Key) -> Key:
    """Return a key that matches nothing, so that the next save takes the entry again."""
    return (key[MODE], key[SIZE], key[MTIME], key[INODE], key[LINKS], UNSURE)


def root_key(found: os.stat_result) -> Key:
    """Return the key of the workspace itself, which survives that its folder is renamed."""
    return (found.st_mode, 0, found.st_mtime_ns, 0, 1, 0)


def member(path: bytes, entry: Entry) -> bytes:
    """Return the name of a regular file in its pack."""
    return entry.extra or path


def text(value: bytes) -> str:
    """Return bytes as a string that JSON can carry. The inverse of `raw`, in every locale."""
    return value.decode("utf-8", "surrogateescape")


def raw(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")


def row(path: bytes, entry: Entry, packs: Dict[str, int]) -> List[Any]:
    """Return an entry as it is stored on the shared disk: without what holds only on one node."""
    key = entry.key
    place = packs[entry.pack] if entry.pack else -1
    return [text(path), key[MODE], key[SIZE], key[MTIME], place, text(entry.extra), text(entry.group)]


def from_row(found: List[Any], packs: List[str]) -> Entry:
    _, mode, size, mtime, place, extra, group = found
    return Entry((mode, size, mtime, 0, 0, 0), packs[place] if place >= 0 else "", raw(extra), raw(group))
