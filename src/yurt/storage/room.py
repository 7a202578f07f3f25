"""How much more fits into a storage tier: its free space, and what is left of the user's quota. Pure."""

from __future__ import annotations

import msgspec

from yurt.model.sizes import amount
from yurt.model.storage import TierPlace, TierUse


class Room(msgspec.Struct, frozen=True):
    """What still fits; None if that is unknown."""

    bytes: int | None = None
    files: int | None = None


def room(place: TierPlace, use: TierUse) -> Room:
    """Return what fits into a tier. A quota of the context counts if the site reports none."""
    quota = use.quota
    size = [use.free]
    files = [use.files_free]
    if quota is not None and quota.used is not None:
        size.append(_left(quota.limit or place.quota, quota.used))
    else:
        size.append(place.quota)  # how much of it is used is unknown
    if quota is not None and quota.files is not None:
        files.append(_left(quota.files_limit or place.files_quota, quota.files))
    else:
        files.append(place.files_quota)
    return Room(_least(size), _least(files))


def lacking(free: Room, size: int, files: int) -> tuple[str, str]:
    """Return what is free and what is needed of that which does not fit, as words; empty texts if all fits."""
    if free.bytes is not None and size > free.bytes:
        return f"{amount(free.bytes)} free", amount(size)
    if free.files is not None and files > free.files:
        return f"room for {counted(free.files)}", counted(files)
    return "", ""


def counted(files: int) -> str:
    return "1 file" if files == 1 else f"{files:,} files"


def _left(limit: int | None, used: int) -> int | None:
    return None if not limit else max(0, limit - used)


def _least(values: list[int | None]) -> int | None:
    return min((each for each in values if each is not None), default=None)
