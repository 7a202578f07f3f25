"""The errors of backups, and sentences for the failures of a disk."""

import errno
import os
from typing import Union

FULL = {errno.ENOSPC: "the disk is full", errno.EDQUOT: "the quota is used up", errno.EFBIG: "a file grew too large"}


class BackupError(Exception):
    """A backup or a restore failed. The message is one sentence for the user; nothing was published."""


class DamagedError(BackupError):
    """A file of the backups is missing, or is not as it was written."""

    def __init__(self, path: str, what: str = "damaged") -> None:
        super().__init__("the backup file %s is %s" % (shown(path), what))
        self.name, self.what = os.path.basename(path), what


class MissingPathError(BackupError):
    """A version has no such file or folder."""


def from_os(error: OSError, doing: str) -> BackupError:
    """Return the error for a failed system call; `doing` completes "cannot …"."""
    reason = FULL.get(error.errno or 0) or error.strerror or str(error)
    hint = "; free some space, then try again" if error.errno in FULL else ""
    return BackupError("cannot %s: %s%s" % (doing, reason, hint))


def shown(path: Union[bytes, str]) -> str:
    """Return a path for a message: one line, whatever bytes it has."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
