"""The private folder of a service on the disk of its node: for its socket and its token.

It is removed at the end. What a killed service has left is removed by the next one on the same node.
"""

import fcntl
import os
import stat
import tempfile
import time
from typing import List, NamedTuple

from yurt.node.files import NodeError, remove

PARENTS = ("/tmp", "/dev/shm", "/var/tmp")
"""Folders on the disk or in the memory of a node; the paths of sockets must be short."""

PREFIX = "yurt-service-"
LOCK = "lock"
"""Locked while the service runs. It appears when it is locked."""

STALE = 3600.0
"""Seconds after which a folder without a lock is not being made any more."""

ROOM = 64 * 1024
"""Bytes that must fit onto the disk."""

SHARED = ("9p", "afs", "beegfs", "ceph", "cifs", "gpfs", "lustre", "nfs", "nfs4", "panfs", "pvfs2", "smb3", "wekafs")
"""Types of file systems that other nodes may share."""


class Place(NamedTuple):
    """The folder of one service, and the file that is locked."""

    folder: str
    lock: int

    @property
    def socket(self) -> str:
        return os.path.join(self.folder, "socket")

    @property
    def token(self) -> str:
        """The file with the token of the program, if it has one."""
        return os.path.join(self.folder, "token")


def make() -> Place:
    """Create the folder, 0700. NodeError if no place allows it."""
    problems: List[str] = []
    for parent in PARENTS:
        _clear(parent)
        if _type(parent) in SHARED:
            problems.append("%s: other nodes share it" % parent)
            continue
        try:
            folder = tempfile.mkdtemp(prefix=PREFIX, dir=parent)
        except OSError as error:
            problems.append("%s: %s" % (parent, error.strerror))
            continue
        try:
            return Place(folder, _locked(folder))
        except OSError as error:
            remove(folder)
            problems.append("%s: %s" % (parent, error.strerror))
    raise NodeError("this node has no place for a private folder (%s)" % "; ".join(problems))


def _locked(folder: str) -> int:
    """Create the lock, and lock it. OSError, for example because the disk is full."""
    aside = os.path.join(folder, LOCK + ".new")
    lock = os.open(aside, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.write(lock, bytes(ROOM)) < ROOM:
            raise OSError(28, os.strerror(28))
        os.fsync(lock)
        os.ftruncate(lock, 0)
        os.rename(aside, os.path.join(folder, LOCK))
    except OSError:
        os.close(lock)
        raise
    return lock


def _clear(parent: str) -> None:
    """Remove the folders of this user whose service was killed."""
    try:
        names = [name for name in os.listdir(parent) if name.startswith(PREFIX)]
    except OSError:
        return
    for name in names:
        folder = os.path.join(parent, name)
        try:
            found = os.lstat(folder)
        except OSError:  # another process has removed it
            continue
        if found.st_uid == os.getuid() and stat.S_ISDIR(found.st_mode):
            _remove_stale(folder, found.st_mtime)


def _remove_stale(folder: str, changed: float) -> None:
    try:
        lock = os.open(os.path.join(folder, LOCK), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        if time.time() - changed > STALE:
            remove(folder)
        return
    except OSError:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove(folder)
    except OSError:  # the service runs
        pass
    finally:
        os.close(lock)


def _type(path: str) -> str:
    """Return the type of the file system that contains a folder; empty if that is not known."""
    best, found = "", ""
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as stream:
            for line in stream:
                _device, point, kind = line.split(" ", 3)[:3]
                if (path + "/").startswith(point.rstrip("/") + "/") and len(point) >= len(best):
                    best, found = point, kind
    except (OSError, ValueError):
        pass
    return found
