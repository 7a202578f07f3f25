"""The private folder of a service on the disk of its node: for its socket and its token.

It is removed at the end. What a killed service has left is removed by the next one on the same node.
"""

import fcntl
import os
import tempfile
from typing import List, NamedTuple

from yurt.node.files import NodeError, remove

PARENTS = ("/tmp", "/dev/shm", "/var/tmp")
"""Folders on the disk or in the memory of a node; the paths of sockets must be short."""

PREFIX = "yurt-service-"
LOCK = "lock"
"""Locked while the service runs."""


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
        try:
            folder = tempfile.mkdtemp(prefix=PREFIX, dir=parent)
            lock = os.open(os.path.join(folder, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
            return Place(folder, lock)
        except OSError as error:
            problems.append("%s: %s" % (parent, error.strerror))
    raise NodeError("this node has no place for a private folder (%s)" % "; ".join(problems))


def _clear(parent: str) -> None:
    """Remove the folders of this user whose service was killed."""
    try:
        names = [name for name in os.listdir(parent) if name.startswith(PREFIX)]
    except OSError:
        return
    for name in names:
        folder = os.path.join(parent, name)
        try:
            if os.lstat(folder).st_uid != os.getuid():
                continue
            lock = os.open(os.path.join(folder, LOCK), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:  # it is being made, or removed
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(folder)
        except OSError:  # the service runs
            pass
        finally:
            os.close(lock)
