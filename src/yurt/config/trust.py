"""Which users the group of a file, or its access control list, lets change it."""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

_WRITE = 0o2
_USER, _GROUP, _NAMED_GROUP = 0x02, 0x04, 0x08
"""Tags of the entries of an access control list of POSIX: a named user, the group of the file, a named group."""

_NFS_CHANGES = 0x2 | 0x4 | 0x40 | 0x40000 | 0x80000
"""Rights of NFSv4: write, append or create, delete below, change the list, change the owner."""


def only_mine(file: Path | int, group: int, user: int) -> bool:
    """Whether only a user and root can write to a file or folder whose mode lets its group write.

    If it has an access control list, that bit is its mask. A group may write if it is the private group of the user,
    which many Linux systems create for each user. `file`: a path or a descriptor.
    """
    named = _attribute(file, "system.posix_acl_access")
    if named:
        writers = [(tag, who) for tag, perm, who in struct.iter_unpack("<HHI", named[4:]) if perm & _WRITE]
        groups = [who if tag == _NAMED_GROUP else group for tag, who in writers if tag in (_GROUP, _NAMED_GROUP)]
        if not all(who in (0, user) for tag, who in writers if tag == _USER):
            return False
        return all(_is_private_group(each, user) for each in groups)
    if not set(_nfs_writers(_attribute(file, "system.nfs4_acl"))) <= {b"OWNER@", b"GROUP@"}:
        return False
    return _is_private_group(group, user)


def _attribute(file: Path | int, name: str) -> bytes:
    """Return an extended attribute of a file; empty if it has none, or this system has no lists of this kind."""
    if sys.platform != "linux":
        return b""
    try:
        return os.getxattr(file, name)
    except OSError:
        return b""


def _nfs_writers(acl: bytes) -> Iterator[bytes]:
    """Yield whom an access control list of NFSv4 lets change the file: a count, then entries with padded names."""
    at = 4
    while at + 16 <= len(acl):
        kind, _flags, rights, length = struct.unpack_from(">IIII", acl, at)
        at += 16
        if kind == 0 and rights & _NFS_CHANGES:
            yield acl[at : at + length]
        at += -(-length // 4) * 4


def _is_private_group(group: int, user: int) -> bool:
    """Whether a group is the primary group of a user, has the user's name and no other members."""
    import grp
    import pwd

    try:
        person, found = pwd.getpwuid(user), grp.getgrgid(group)
    except KeyError:
        return False
    return person.pw_gid == group and found.gr_name == person.pw_name and set(found.gr_mem) <= {person.pw_name}
