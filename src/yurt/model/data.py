"""Copies of files and folders to, from and between contexts: requests and results. Pure values."""

from __future__ import annotations

import msgspec


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """How to copy."""

    checksum: bool = False
    """Whether to compare files by their content; otherwise by size and modification time."""
    delete: bool = False
    """Whether to delete files in a target folder that the source does not have."""
    dry: bool = False
    """Whether to find out only what would be copied and deleted."""
    no_git: bool = False
    """Whether to leave out each .git."""


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """What a transfer has done."""

    files: int = 0
    """Number of files sent."""
    size: int = 0
    """Their bytes."""
    unchanged: int = 0
    """Number of files that the target had already."""
    deleted: int = 0
    """Number of files deleted at the target."""
    skipped: list[str] = []
    """Special files, such as sockets, which are not copied."""
    no_git: bool = False
    """Whether the source is a git repository whose .git was left out."""
    vanished: bool = False
    """Whether files disappeared or changed during the transfer."""
    way: str = "rsync"
    """rsync, or tar if one side has no rsync; between two contexts also how they were connected."""
