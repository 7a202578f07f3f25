"""Backups of a workspace: versions that are complete or not there. The design is in docs/explanation."""

from yurt.node.backup.checking import verify
from yurt.node.backup.errors import BackupError, MissingPathError
from yurt.node.backup.restore import packs_of, restore, restore_paths
from yurt.node.backup.retention import held_size, retain
from yurt.node.backup.versions import Version, needs, newest, versions
from yurt.node.backup.workspace import Workspace

__all__ = [
    "BackupError",
    "MissingPathError",
    "Version",
    "Workspace",
    "held_size",
    "needs",
    "newest",
    "packs_of",
    "restore",
    "restore_paths",
    "retain",
    "verify",
    "versions",
]
