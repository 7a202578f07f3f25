"""The totals that rsync prints at the end of a transfer (--info=stats2)."""

from __future__ import annotations

from yurt.model.disk import number

FILES, CREATED = "Number of files", "Number of created files"
TRANSFERRED, SIZE = "Number of regular files transferred", "Total transferred file size"
DELETED = "Number of deleted files"


def total(line: str) -> tuple[str, int, dict[str, int]] | None:
    """Return the name, the number and the numbers by kind of a line `Number of files: 5 (reg: 3, link: 1, dir: 1)`."""
    name, colon, rest = line.partition(": ")
    whole, _space, kinds = rest.partition(" ")
    found = number(whole)
    if not colon or found is None:
        return None
    pairs = (each.partition(": ") for each in kinds.strip("()").split(", "))
    return name, found, {kind: each for kind, _colon, count in pairs if (each := number(count)) is not None}
