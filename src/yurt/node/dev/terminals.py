"""The user's terminals on this node: when they were last used, and messages to them."""

import os
import stat
from typing import Collection, Iterator, Optional, Set

PTS = "/dev/pts"
PROC = "/proc"


def terminals(folder: str = PTS) -> Iterator[str]:
    """Yield the terminals of this user."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        path = os.path.join(folder, name)
        try:
            found = os.lstat(path)
        except OSError:
            continue
        if name.isdigit() and stat.S_ISCHR(found.st_mode) and found.st_uid == os.getuid():
            yield path


def last_use(folder: str = PTS) -> float:
    """Return when a terminal of this user last read or wrote something; 0 without terminals."""
    latest = 0.0
    for path in terminals(folder):
        try:
            found = os.stat(path)
        except OSError:
            continue
        latest = max(latest, found.st_atime, found.st_mtime)
    return latest


def used_by(pids: Collection[int], proc: str = PROC) -> Set[str]:
    """Return the terminals that these processes read from or write to."""
    found = set()
    for each in ("%d/fd/%d" % (pid, number) for pid in pids for number in range(3)):
        try:
            found.add(os.readlink(os.path.join(proc, each)))
        except OSError:
            pass
    return found


def tell(message: str, folder: str = PTS, only: Optional[Set[str]] = None) -> int:
    """Write a line to all terminals of this user, or `only` to these; return to how many.

    It does not wait for one that is stuck, and does not count as use of a terminal.
    """
    line = ("\r\n\ayurt: %s\r\n" % message).encode("utf-8", "replace")
    told = 0
    for path in terminals(folder):
        if only is not None and path not in only:
            continue
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError:
            continue
        try:
            before = os.fstat(descriptor)
            os.write(descriptor, line)
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
            told += 1
        except OSError:
            pass
        finally:
            os.close(descriptor)
    return told
