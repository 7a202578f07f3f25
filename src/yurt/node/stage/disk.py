"""Chooses the folder for staged files on the disk of a node, private to this user."""

import os
import stat
from typing import Dict, List, Mapping

from yurt.node.files import NodeError, private_folder
from yurt.node.stage.words import host

PARENTS = ("/scratch", "/local", "/localscratch", "/tmp", "/var/tmp")

SHARED = {
    *("9p", "afs", "beegfs", "ceph", "cifs", "gpfs", "lustre", "nfs", "nfs4", "panfs", "pvfs2", "smb3", "smbfs"),
    *("wekafs", "autofs"),
}
"""Types of file systems that other nodes may share; also those that begin with `fuse`."""

MEMORY = ("tmpfs", "ramfs")


def base(variables: Mapping[str, str]) -> str:
    """Create and return this user's folder for staged files (0700). NodeError if no disk of the node allows it.

    $SLURM_TMPDIR is the choice of the site. Otherwise memory is used only if there is no disk.
    """
    name = "yurt-stage-%d" % os.getuid()
    problems = []  # type: List[str]
    for parent in _parents(variables):
        try:
            if not _is_safe(parent):
                problems.append("other users can replace folders in %s" % parent)
                continue
            return private_folder(os.path.join(parent, name))
        except NodeError as error:
            problems.append(str(error))
        except OSError as error:
            problems.append("%s: %s" % (parent, error.strerror))
    raise NodeError("%s has no disk for staged files (%s)" % (host(), "; ".join(problems) or "all are shared"))


def is_of_job(folder: str, variables: Mapping[str, str]) -> bool:
    """Return whether the site removes a folder at the end of the job."""
    own = variables.get("SLURM_TMPDIR", "")
    return bool(own) and folder.startswith(own.rstrip("/") + "/")


def _parents(variables: Mapping[str, str]) -> List[str]:
    own = variables.get("SLURM_TMPDIR", "")
    if own.startswith("/") and os.path.isdir(own) and os.access(own, os.W_OK):
        return [own.rstrip("/")]
    types = _types()
    disks = []  # type: List[str]
    memory = []  # type: List[str]
    for each in (variables.get("TMPDIR", "").rstrip("/"), *PARENTS):
        if not each.startswith("/") or each in disks or not os.path.isdir(each) or not os.access(each, os.W_OK):
            continue
        kind = _type(os.path.realpath(each), types)
        if kind in SHARED or kind.startswith("fuse"):
            continue
        (memory if kind in MEMORY else disks).append(each)
    return disks + memory


def _is_safe(parent: str) -> bool:
    """Return whether no other user can replace a folder of this user in it."""
    found = os.stat(parent)
    if found.st_uid not in (0, os.getuid()):
        return False
    return bool(found.st_mode & stat.S_ISVTX) or not found.st_mode & 0o022


def _types() -> Dict[str, str]:
    """Return the types of file systems by mount point; empty where the system does not list them."""
    found = {}
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as stream:
            for line in stream:
                _device, point, kind = line.split(" ", 3)[:3]
                found[point] = kind
    except (OSError, ValueError):
        pass
    return found


def _type(path: str, types: Mapping[str, str]) -> str:
    while path not in types and path not in ("", "/"):
        path = os.path.dirname(path)
    return types.get(path, "")
