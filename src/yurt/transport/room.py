"""Compares the size of a download with the free space on the disk of this machine, before the transfer starts."""

from __future__ import annotations

import os
from pathlib import Path

from yurt.errors import HereIsFullError
from yurt.model.sizes import amount
from yurt.transport.rsync_process import PARTIAL


def free(folder: Path) -> int:
    """Return the bytes that this user can still write to the disk of a folder."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def check(target: Path, size: int) -> None:
    """HereIsFullError if files of so many bytes do not fit on the disk of a folder."""
    room = free(target)
    if size <= room or size <= room + _received(target):
        return
    raise HereIsFullError(
        f"cannot write {target}: the files have {amount(size)} (sparse files in full), but the disk of this machine has"
        f" only {amount(room)} free",
        code="disk-full",
        hint="free some space, or download to another disk, or fewer files",
    )


def _received(target: Path) -> int:
    """Return the bytes of partial files, which an interrupted transfer continues where they are."""
    parts = [Path(folder) for folder, _names, _files in os.walk(target) if Path(folder).name == PARTIAL]
    return sum(path.lstat().st_blocks * 512 for folder in parts for path in folder.iterdir())
