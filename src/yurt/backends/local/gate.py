"""Writes texts once in a run folder, as gate.sh does. Standard library only: the process of a run imports it."""

from __future__ import annotations

import errno
import os
import time


def private(path: str, flags: int) -> int:
    """Create a file with mode 0600: the umask is the user's, for the command."""
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def read_written(path: str) -> str:
    """Return the text written once under a path; empty if there is none."""
    for place in (path, f"{path}.d/text"):
        try:
            with open(os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), errors="surrogateescape") as file:
                line = file.readline()
        except OSError:
            continue
        if line.endswith("\n") and line != "\n":
            return line[:-1]
    return ""


def write_once(path: str, text: str, me: str, *, patience: int = 30) -> str:
    """Write a text, unless there is one, and return the one that is permanent; empty if none could be written.

    `me` is different for each writer. A full disk may have room soon: it is tried `patience` times, once a second.
    Only for disks with hard links.
    """
    folder = os.path.dirname(os.path.abspath(path))
    for attempt in range(patience):
        if attempt:
            time.sleep(1)
        try:
            _link(path, f"{path}.{me}", text)
        except OSError:
            pass  # only the text read back counts: over NFS, a link may report failure to the winner
        if found := read_written(path):
            return found
        if not os.path.isdir(folder) and os.path.isdir(os.path.dirname(folder)):
            break  # the folder was removed: it does not come back
    return ""


def _link(path: str, aside: str, text: str) -> None:
    """Write a text aside and link it: another name for the file appears with its whole content, or not at all."""
    try:
        with open(aside, "w", opener=private, errors="surrogateescape") as file:
            file.write(text + "\n")
            file.flush()
            try:
                os.fsync(file.fileno())
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                    raise
        os.link(aside, path)
    finally:
        try:
            os.unlink(aside)
        except OSError:
            pass
