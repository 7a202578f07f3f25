"""Confines what a sync starts on this machine: with Landlock of Linux, it writes only below some folders.

The other side of a sync can ask a Unison to write any file. Without Landlock, Unison runs as the user alone.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
"""The numbers of the system calls, which have no names in the C library."""
VERSION, PATH_BENEATH, NO_NEW_PRIVS = 1, 1, 38
WRITE_FILE, TRUNCATE = 1 << 1, 1 << 14
REMOVE_AND_MAKE = sum(1 << bit for bit in range(4, 13))
"""Remove files and folders, and make files, folders, links, pipes, sockets and devices."""
REFER = 1 << 13
"""Move files and make hard links from one folder to another."""
SIGNALS_AND_ABSTRACT_SOCKETS = 3
TRUNCATE_SINCE, SCOPES_SINCE = 3, 6
OLDEST = 2
"""The first version with REFER: before it, nothing could be moved to the backups."""

O_PATH = 0o10000000
"""Opens a file only to name it."""
DEVICES = ("/dev/null", "/dev/tty", "/dev/pts")


def version() -> int:
    """Return the version of Landlock that this system has; 0 or less if it has none."""
    if sys.platform != "linux":
        return 0
    return int(ctypes.CDLL(None).syscall(CREATE_RULESET, None, ctypes.c_size_t(0), VERSION))


def call(start: Callable[[], object], folders: Sequence[str]) -> bool:
    """Call a function that starts processes; they write only below these folders, and so does what they start.

    Return whether they are confined: not on systems without Landlock. The limits are those of a thread, which ends with
    the call: this process keeps its rights.
    """
    confined, failed = False, list[BaseException]()

    def run() -> None:
        nonlocal confined
        try:
            confined = _restrict_thread(folders)
            start()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        thread.join()
    finally:
        thread.join()  # after Ctrl-C: the caller has to know what was started
    if failed:
        raise failed[0]
    return confined


def _restrict_thread(folders: Sequence[str]) -> bool:
    """Confine the current thread; return whether this system can do that."""
    known = version()
    if known < OLDEST:
        return False
    library = ctypes.CDLL(None)
    files = WRITE_FILE | (TRUNCATE if known >= TRUNCATE_SINCE else 0)
    every = files | REMOVE_AND_MAKE | REFER
    handled = [every, 0, SIGNALS_AND_ABSTRACT_SOCKETS] if known >= SCOPES_SINCE else [every]
    attributes = struct.pack(f"={len(handled)}Q", *handled)
    ruleset = library.syscall(CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    if ruleset < 0:
        return False
    try:
        for path in (*folders, *DEVICES):
            _allow(library, ruleset, path, files if path in DEVICES else every)
        refused = library.prctl(NO_NEW_PRIVS, 1, 0, 0, 0) or library.syscall(RESTRICT_SELF, ruleset, 0)
        return not refused
    finally:
        os.close(ruleset)


def _allow(library: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    """Allow these rights below a path. One that does not exist stays forbidden."""
    if not Path(path).exists():
        return
    folder = os.open(path, O_PATH | os.O_CLOEXEC)
    try:
        library.syscall(ADD_RULE, ruleset, PATH_BENEATH, struct.pack("=Qi", rights, folder), 0)
    finally:
        os.close(folder)
