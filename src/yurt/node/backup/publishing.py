"""Publishes a version: its index, then the version file, whose name only one writer can get."""

import os
import time
from typing import Callable, Dict, List, NamedTuple, Set, Tuple

from yurt.node.backup import manifest, storage
from yurt.node.backup.entries import Entry
from yurt.node.backup.errors import BackupError, DamagedError
from yurt.node.backup.manifest import Pack
from yurt.node.backup.versions import Version, newest_of, numbers

TRIES = 20


class Draft(NamedTuple):
    """A version that has no number yet."""

    version: Version
    full: str
    """The full index that it builds on; "" if it needs a new one."""
    entries: Dict[bytes, Entry]
    packs: Dict[str, Pack]
    differing: Set[bytes]
    token: str
    """Part of the name of a new index, so that retention leaves it alone."""
    room: int
    """Bytes that the workspace uses on the disk of its node."""


def publish(backups: str, draft: Draft, parent_id: str, before: Callable[[int], None]) -> Tuple[Version, str]:
    """Publish a draft under the next free number; return it and the name of its index.

    It is a fork unless the newest version is the parent. `before` is called with each number that is tried.
    BackupError or OSError: nothing was published, and nothing was left.
    """
    left: List[str] = []
    try:
        index = draft.full
        for _ in range(TRIES):
            names = os.listdir(backups)
            newest = newest_of(backups, names)
            number = max(numbers(names), default=0) + 1
            if not index:
                index = _write_index(backups, "i%d%s" % (number, draft.token), draft.entries, left)
            fork = newest is not None and (newest.number, newest.id) != (draft.version.parent, parent_id)
            seconds = round(time.time() - draft.version.time, 3)
            version = draft.version._replace(number=number, fork=fork, seconds=seconds)
            header = {"version": version._asdict(), "index": index, "room": draft.room}
            content = manifest.version_file(header, draft.packs, draft.entries, draft.differing)
            before(number)
            if _publish(backups, number, content):
                left.clear()
                return version, index
        raise BackupError("cannot publish a version in %s: other writers were faster %d times" % (backups, TRIES))
    finally:
        for path in left:
            storage.remove(path)


def _publish(backups: str, number: int, content: bytes) -> bool:
    target = os.path.join(backups, "v%d" % number)
    temporary = storage.aside(backups, "v%d" % number)
    storage.write(temporary, content)
    try:
        return storage.publish(temporary, target, content)
    finally:
        storage.remove(temporary)


def _write_index(backups: str, name: str, entries: Dict[bytes, Entry], left: List[str]) -> str:
    temporary = storage.aside(backups, name)
    content = manifest.index_file(entries)
    storage.write(temporary, content)
    left.append(temporary)
    storage.place(temporary, os.path.join(backups, name))
    left[-1] = os.path.join(backups, name)
    if storage.read(left[-1]) != content:
        raise DamagedError(left[-1])
    return name
