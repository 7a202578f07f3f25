"""Where the workspace is on the node's own disk, and whether that folder is this user's alone."""

import os
import pwd
import stat
from typing import List, Mapping, NamedTuple, Tuple

from yurt.node.dev.config import Config
from yurt.node.files import NodeError, private_folder
from yurt.node.writers import others_write

SCRATCH = ("/scratch", "/local", "/localscratch", "/lscratch", "/raid/scratch")

OF = "of-"
"""What the name of the folder about a workspace begins with; the name of the workspace follows."""


class Place(NamedTuple):
    """The paths of a dev node on the disk of its node."""

    workspace: str
    folder: str
    """For the socket, the ssh keys and the caches: on the node's own disk, wherever the workspace is; 0700."""
    beside: str
    """For what is known of this workspace, and for unfinished folders: on the disk of the workspace; 0700."""

    @property
    def state(self) -> str:
        return os.path.join(self.beside, "state")


def user() -> str:
    """Return the name of this user; its number if the node does not know the name."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def candidates(environment: Mapping[str, str], name: str) -> List[str]:
    """Return the folders where a workspace can be, best first."""
    found = [os.path.join(each, name) for each in SCRATCH]
    if environment.get("SLURM_TMPDIR"):
        found.append(environment["SLURM_TMPDIR"])
    return [*found, *(os.path.join(each, "yurt-" + name) for each in (environment.get("TMPDIR"), "/tmp") if each)]


def unsafe(path: str) -> str:
    """Return why other users can write to a folder or replace it; empty if they cannot. It may not exist yet."""
    above = os.path.dirname(path)
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode) and found.st_uid not in (0, os.getuid()):
            return "%s is a symbolic link of another user" % path
        found = os.stat(path)
        if not stat.S_ISDIR(found.st_mode):
            return "%s is not a folder" % path
        if found.st_uid != os.getuid():
            return "%s belongs to another user" % path
        if others_write(path, found, os.getuid()):
            return "other users can write to %s; correct it with `chmod go-w %s`" % (path, path)
        above = os.path.dirname(os.path.realpath(path))
    except OSError:
        above = os.path.realpath(above)
    while True:
        found = os.lstat(above)
        if found.st_uid not in (0, os.getuid()):
            return "%s belongs to another user, who can replace folders in it" % above
        if not found.st_mode & stat.S_ISVTX and others_write(above, found, os.getuid()):
            return "other users can replace folders in %s" % above
        if above == os.path.dirname(above):
            return ""
        above = os.path.dirname(above)


def choose(config: Config, environment: Mapping[str, str]) -> Tuple[Place, List[str]]:
    """Return the place of the workspace, with its folders created, and notes on folders that are not used.

    Raises NodeError if no folder on this node is this user's alone.
    """
    root, notes = _own_disk(config, environment)
    folder = _own_folder(root, config.name)
    parent = beside = ""
    if os.path.isabs(config.workspace):
        parent = os.path.dirname(config.workspace)
        why = _usable(parent, deep=True)
        if why:
            raise NodeError("the workspace cannot be in %s: %s" % (parent, why))
        beside = _own_folder(parent, config.name)
    name = os.path.basename(config.workspace)
    beside = private_folder(os.path.join(beside or folder, OF + name))
    return Place(os.path.join(parent or root, name), folder, beside), notes


def _own_folder(root: str, name: str) -> str:
    return private_folder(os.path.join(private_folder(os.path.join(root, ".yurt-dev")), name))


def _own_disk(config: Config, environment: Mapping[str, str]) -> Tuple[str, List[str]]:
    """Return this user's folder on the node's own disk, and why better ones are not used. Raises NodeError."""
    if config.root:
        root = os.path.abspath(os.path.expanduser(config.root))
        why = _usable(root, deep=True)
        if why:
            raise NodeError("the workspace cannot be in %s: %s" % (root, why))
        return root, []
    notes: List[str] = []
    for root in candidates(environment, user()):
        why = _usable(root, deep=False)
        if not why:
            if root == environment.get("SLURM_TMPDIR"):
                notes.append("the workspace is in %s, which may be removed when the job ends; its backups stay" % root)
            return root, notes
        if os.path.lexists(root):
            notes.append(why)
    raise NodeError("no folder for the workspace on this node: %s" % "; ".join(notes or [why]))


def _usable(root: str, deep: bool) -> str:
    """Create a root if its parent is there (if `deep`, all above it too); return why it is not usable, or nothing."""
    try:
        if not os.path.isdir(root):
            parent = os.path.dirname(root)
            if not os.path.isdir(parent):
                if not deep:
                    return "%s does not exist" % parent
                os.makedirs(parent, 0o700, exist_ok=True)
            why = unsafe(root)
            if why:
                return why
            os.mkdir(root, 0o700)
        why = unsafe(root)
        if not why and not os.access(root, os.W_OK | os.X_OK):
            why = "%s is not writable" % root
        return why
    except OSError as error:
        return "%s: %s" % (root, error.strerror)
