"""Backups of a workspace: versions that are complete or not there. The design is in docs/explanation."""

from yurt.node.backup.checking import check, newest_whole, verify
from yurt.node.backup.errors import BackupError, DamagedError, MissingPathError
from yurt.node.backup.restore import packs_of, restore, restore_paths
from yurt.node.backup.retention import held_size, retain
from yurt.node.backup.storage import INSIDE
from yurt.node.backup.versions import Version, needs, newest, room, unreadable, versions
from yurt.node.backup.workspace import Workspace

__all__ = [
    "INSIDE",
    "BackupError",
    "DamagedError",
    "MissingPathError",
    "Version",
    "Workspace",
    "check",
    "held_size",
    "needs",
    "newest",
    "newest_whole",
    "packs_of",
    "restore",
    "restore_paths",
    "retain",
    "room",
    "unreadable",
    "verify",
    "versions",
]
