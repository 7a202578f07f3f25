"""What a version must keep to: its paths are below one folder, and no link is on the way to one.

A version may come from another site, or be restored on the user's machine: nothing outside of the target may be read,
written or changed for it. Pure.
"""

import stat
from typing import Container, Dict

from yurt.node.backup.entries import MODE, MTIME, ROOT, SIZE, Entry, member

LAST_TIME = 1 << 63
"""No file system has a later time, in nanoseconds."""


def check(entries: Dict[bytes, Entry], packs: Container[str]) -> None:
    """ValueError if the entries of a version are not those of one folder, or name a pack that the version lacks."""
    if ROOT not in entries or not stat.S_ISDIR(entries[ROOT].key[MODE]):
        raise ValueError
    for path, entry in entries.items():
        if path != ROOT and not (is_below(path) and _leads_through_folders(path, entries)):
            raise ValueError
        if not _is_sound(entry) or (entry.pack and not (entry.pack in packs and is_below(member(path, entry)))):
            raise ValueError


def is_below(path: bytes) -> bool:
    """Return whether a path is relative, and never leads upwards."""
    parts = path.split(b"/")
    return b"\0" not in path and b"" not in parts and b"." not in parts and b".." not in parts


def _leads_through_folders(path: bytes, entries: Dict[bytes, Entry]) -> bool:
    """Return whether the nearest folder above a path that the version has is a folder. So are then those above it."""
    above = path.rpartition(b"/")[0]
    while above and above not in entries:
        above = above.rpartition(b"/")[0]
    return not above or stat.S_ISDIR(entries[above].key[MODE])


def _is_sound(entry: Entry) -> bool:
    if not all(isinstance(each, int) for each in entry.key):
        return False
    mode, size, mtime = entry.key[MODE], entry.key[SIZE], entry.key[MTIME]
    regular = not entry.pack or stat.S_ISREG(mode)
    target = not stat.S_ISLNK(mode) or (bool(entry.extra) and b"\0" not in entry.extra)
    return regular and target and 0 <= mode < 1 << 32 and size >= 0 and abs(mtime) < LAST_TIME
