"""Which users the group of a file or folder, or its access control list, lets write to it."""

import grp
import os
import pwd
import struct
from typing import Iterator, Union

_USER, _GROUP, _NAMED_GROUP = 0x02, 0x04, 0x08
"""Tags of entries in an access control list of POSIX: a named user, the group of the file, a named group."""

_WRITE = 0x2
"""Right of POSIX: write to a file, or create and replace what is in a folder."""

_NFS_CHANGES = 0x2 | 0x4 | 0x40 | 0x40000 | 0x80000
"""Rights of NFSv4: write or create, append or make folders, delete below, change the list, change the owner."""

_ALLOWED, _ONLY_BELOW = 0, 0x8
"""The type of an entry of NFSv4 that allows something, and the flag of one that counts only for what is created."""


def others_write(path: Union[str, int], about: os.stat_result, user: int) -> bool:
    """Return whether other users than this one and root can write to a file or folder: a path or a descriptor.

    A group may write if it is that of root, or the private group of the user, which many Linux systems create for each.
    """
    if about.st_mode & 0o002:
        return True
    if not about.st_mode & 0o020:  # also the mask of a list: without it, nobody whom the list names can write
        return False
    named = _attribute(path, "system.posix_acl_access")
    if not named:
        nfs = _nfs_writers(_attribute(path, "system.nfs4_acl"))
        return any(each not in (b"OWNER@", b"GROUP@") for each in nfs) or not _is_private(about.st_gid, user)
    for tag, rights, number in struct.iter_unpack("<HHI", named[4:]):
        if not rights & _WRITE:
            continue
        if tag == _USER and number not in (0, user):
            return True
        if tag in (_GROUP, _NAMED_GROUP) and not _is_private(about.st_gid if tag == _GROUP else number, user):
            return True
    return False


def _attribute(path: Union[str, int], name: str) -> bytes:
    """Return an extended attribute; empty if there is none, or this system has no lists of this kind."""
    try:
        return os.getxattr(path, name)
    except (AttributeError, OSError):
        return b""


def _nfs_writers(acl: bytes) -> Iterator[bytes]:
    """Yield whom a list of NFSv4 lets change the file. It is a count, then entries that end with a padded name."""
    at = 4
    while at + 16 <= len(acl):
        kind, flags, rights, length = struct.unpack_from(">IIII", acl, at)
        at += 16
        if kind == _ALLOWED and not flags & _ONLY_BELOW and rights & _NFS_CHANGES:
            yield acl[at : at + length]
        at += (length + 3) // 4 * 4


def _is_private(group: int, user: int) -> bool:
    """Return whether a group is that of root, or the primary group of a user with the same name, without others."""
    try:
        person, found = pwd.getpwuid(user), grp.getgrgid(group)
    except KeyError:
        return False
    own = person.pw_gid == group and found.gr_name == person.pw_name
    return (group == 0 or own) and set(found.gr_mem) <= {person.pw_name, "root"}
