"""Processes of a service: none stays when it has ended, also if they have left its process group, as kernels do."""

import os
import signal
import time
from typing import Any, List

DEATH_SIGNAL, SUBREAPER = 1, 36
"""Operations of prctl."""


def _prctl(operation: int, value: int) -> None:
    """Without it, which is rare, processes may stay until the scheduler ends them."""
    try:
        import ctypes

        libc: Any = ctypes.CDLL(None)
        libc.prctl(operation, value, 0, 0, 0)
    except (ImportError, AttributeError, OSError):
        pass


def adopt() -> None:
    """Let this process become the parent of processes that it started indirectly and whose parents have ended."""
    _prctl(SUBREAPER, 1)


def end_with_parent() -> None:
    """In a new process: let it get TERM when the process that started it ends, however that happens."""
    _prctl(DEATH_SIGNAL, signal.SIGTERM)


def end_all(grace: float) -> None:
    """End the children of this process: TERM, and KILL after so many seconds. Their children are adopted, and end."""
    told: List[int] = []
    until = time.monotonic() + grace
    while True:
        found = _children()
        if not found:
            return
        over = time.monotonic() > until
        if over and time.monotonic() > until + grace:  # they hang in the kernel
            return
        for each in found:
            if over or each not in told:
                told.append(each)
                _signal(each, signal.SIGKILL if over else signal.SIGTERM)
        time.sleep(0.05)


def _signal(process: int, number: int) -> None:
    try:
        os.kill(process, number)
    except OSError:
        pass


def _children() -> List[int]:
    """Return the children of this process that have not ended; forget those that have."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except OSError:  # there are none
        return []
    found, own = [], str(os.getpid())
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        try:
            with open("/proc/%s/stat" % name, errors="replace") as stream:
                state, parent = stream.read().rpartition(")")[2].split()[:2]
        except (OSError, ValueError):
            continue
        if parent == own and state not in "ZX":
            found.append(int(name))
    return found
