"""Extended attributes of folders, which no pack holds."""

import json
import os
from typing import Dict

from yurt.node.backup.entries import raw, text
from yurt.node.backup.errors import BackupError, shown

KEPT = ("user.", "system.posix_acl_")
CAN = hasattr(os, "listxattr")


def read(path: bytes) -> bytes:
    """Return the attributes and access lists of a folder, encoded; b"" if it has none."""
    found: Dict[str, str] = {}
    try:
        for name in os.listxattr(path, follow_symlinks=False) if CAN else ():
            if name.startswith(KEPT):
                found[name] = text(os.getxattr(path, name, follow_symlinks=False))
    except OSError:
        pass  # the file system has none, or the folder is gone
    return raw(json.dumps(found, sort_keys=True)) if found else b""


def write(path: bytes, encoded: bytes, *, acls: bool = True) -> None:
    """Set attributes that `read` returned, without `acls` no access lists. OSError if this file system has none."""
    if not encoded or not CAN:
        return
    kept = KEPT if acls else KEPT[:1]
    try:
        values: Dict[str, str] = json.loads(text(encoded))
        for name, value in values.items():
            if name.startswith(kept):
                os.setxattr(path, name, raw(value), follow_symlinks=False)
    except (ValueError, TypeError, AttributeError):
        raise BackupError("the attributes of %s have an unknown form" % shown(path)) from None
