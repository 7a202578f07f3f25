"""Whether what a first sync writes fits into the free space and the quota of each place. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from yurt.errors import RefusedError
from yurt.model.disk import read_quotas
from yurt.model.sizes import amount

DF = re.compile(r"(.*?)\s+([0-9]{1,18}|-)\s+([0-9]{1,18}|-)\s+([0-9]{1,18}|-)\s+([0-9]{1,18}%|-)\s+(/.*)")
"""FILESYSTEM TOTAL USED FREE CAPACITY MOUNT"""

SPARE = 50_000_000
"""Bytes that must stay free."""


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """How much a place can take. None: not known, or no limit."""

    free: int | None = None
    """Bytes that are free on the disk."""
    free_files: int | None = None
    quota: int | None = None
    """Bytes that are left of the user's quota; negative if it is exceeded."""
    quota_files: int | None = None


def read(sections: Mapping[str, Sequence[str]]) -> Room:
    """Return the room of a place from the sections of survey.sh. Missing ones are not known."""
    disk, blocks = _df(sections.get("blocks", ()))
    _disk, inodes = _df(sections.get("inodes", ()))
    # `lfs quota` prints only the file system of the root; `quota` prints all of them.
    found = read_quotas(sections.get("lustre", ()))
    found += [each for each in read_quotas(sections.get("quota", ())) if each.path in disk]
    return Room(
        free=None if blocks is None else blocks * 1024,
        free_files=inodes,
        quota=_least([(each.limit_kb - each.used_kb) * 1024 for each in found if each.limit_kb]),
        quota_files=_least([each.file_limit - each.files for each in found if each.file_limit]),
    )


def shortage(place: str, room: Room, size: int, files: int) -> RefusedError | None:
    """Return the error if a place has no room for so many bytes and files, else None."""
    hint = f"remove files on {place}, or ignore folders with `yurt home profile --edit`"
    needed = f"the first sync writes {amount(size)} to {place}"
    if room.quota is not None and room.quota < size:
        left = f"only {amount(room.quota)} of your quota there are left"
        if room.quota <= 0:
            left = "your quota there is used up"
        return RefusedError(f"{needed}, but {left}", code="quota-full", hint=hint)
    if room.free is not None and room.free < size + SPARE:
        return RefusedError(f"{needed}, but only {amount(room.free)} are free there", code="disk-full", hint=hint)
    for limit, what, code in (
        (room.quota_files, "your quota there allows only {} more", "quota-full"),
        (room.free_files, "the disk there has room for only {} more", "disk-full"),
    ):
        if limit is not None and limit < files:
            text = f"the first sync creates {files} files on {place}, but {what.format(max(limit, 0))}"
            return RefusedError(text, code=code, hint=hint)
    return None


def _df(lines: Sequence[str]) -> tuple[tuple[str, ...], int | None]:
    """Return the names of a file system, device and mount point, and its free blocks or inodes."""
    row = DF.fullmatch(lines[-1].strip()) if lines else None
    if row is None:
        return (), None
    total, free = row[2], row[4]
    # Some file systems, such as btrfs, report 0 inodes: they have no limit.
    known = free.isdigit() and total not in ("0", "-")
    return (row[1], row[6]), int(free) if known else None


def _least(values: Sequence[int]) -> int | None:
    return min(values, default=None)
