"""The folder of one run on the disk of a node, with its links to inputs and its outputs."""

import fcntl
import os
import stat
import time
from typing import List, NamedTuple, Sequence

from yurt.node.files import NodeError, private_folder, remove
from yurt.node.stage.copies import Copy, Input

FOLDER = "runs"
FILES = "files"
"""In the folder of a run: what the run sees as $YURT_STAGE."""

LOCK, START, KEPT = "lock", "start", "kept"

LONGEST = 86400.0
"""Seconds for which outputs that could not be copied back stay on the node, if there is room."""


class Own(NamedTuple):
    """The folder of a run, which is locked."""

    folder: str
    lock: int
    earlier: bool
    """Whether it has the outputs of the previous start, which was killed on this node."""

    @property
    def files(self) -> str:
        return os.path.join(self.folder, FILES)


def make(base: str, run: str, start: int) -> Own:
    """Create the folder of a start. NodeError or OSError if that is impossible."""
    folder = private_folder(os.path.join(private_folder(os.path.join(base, FOLDER)), run))
    path = os.path.join(folder, LOCK)
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise NodeError("the files of an earlier start of run %s are still in use in %s" % (run, folder)) from None
    earlier = start > 1 and _read(folder) == start - 1
    if not earlier:
        remove(os.path.join(folder, FILES))
    remove(os.path.join(folder, KEPT))
    private_folder(os.path.join(folder, FILES))
    with open(os.path.join(folder, START), "w", encoding="ascii") as stream:
        stream.write("%d\n" % start)
    return Own(folder, lock, earlier)


def link(own: Own, inputs: Sequence[Input], copies: Sequence[Copy]) -> None:
    """Give the inputs their names."""
    for at, each in enumerate(inputs):
        path = os.path.join(own.files, each.name)
        remove(path)
        os.symlink(copies[at].path, path)


def keep_for_later(own: Own) -> None:
    """Let the outputs stay on the node for a day, if there is room."""
    with open(os.path.join(own.folder, KEPT), "w", encoding="ascii"):
        pass
    os.close(own.lock)


def drop(own: Own) -> None:
    """Remove the folder."""
    remove(own.files)
    remove(own.folder)
    os.close(own.lock)


def clear(base: str, mine: str, everything: bool = False) -> None:
    """Remove the folders of runs that were killed, except of `mine`; kept outputs after a day, or with `everything`."""
    parent = os.path.join(base, FOLDER)
    for name in _names(parent):
        folder = os.path.join(parent, name)
        if name == mine or not _is_own_folder(folder):
            continue
        try:
            lock = os.open(os.path.join(folder, LOCK), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            if _age(folder) > 60:  # it may be being made
                remove(folder)
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            kept = os.path.join(folder, KEPT)
            if everything or not os.path.exists(kept) or _age(kept) > LONGEST:
                remove(folder)
        except OSError:  # the run uses it
            pass
        finally:
            os.close(lock)


def _is_own_folder(folder: str) -> bool:
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def _age(path: str) -> float:
    try:
        return time.time() - os.lstat(path).st_mtime
    except OSError:
        return 0.0


def _read(folder: str) -> int:
    try:
        with open(os.path.join(folder, START), encoding="ascii") as stream:
            return int(stream.read())
    except (OSError, ValueError):
        return 0


def _names(folder: str) -> List[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
