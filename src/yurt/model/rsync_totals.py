"""The totals that rsync prints at the end of a transfer (--info=stats2)."""

from __future__ import annotations

FILES, CREATED = "Number of files", "Number of created files"
TRANSFERRED, SIZE = "Number of regular files transferred", "Total transferred file size"
DELETED = "Number of deleted files"


def total(line: str) -> tuple[str, int, dict[str, int]] | None:
    """Return the name, the number and the numbers by kind of a line `Number of files: 5 (reg: 3, link: 1, dir: 1)`."""
    name, colon, rest = line.partition(": ")
    number, _space, kinds = rest.partition(" ")
    if not colon or not number.isdigit():
        return None
    pairs = (each.partition(": ") for each in kinds.strip("()").split(", "))
    return name, int(number), {kind: int(count) for kind, _colon, count in pairs if count.isdigit()}
