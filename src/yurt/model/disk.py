"""The free space and the quotas of a file system, as df, quota and lfs quota print them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec


class Space(msgspec.Struct, frozen=True):
    """The free space and inodes of a file system; None if df does not say."""

    path: str
    total_kb: int | None
    free_kb: int | None
    inodes: int | None
    free_inodes: int | None


class Quota(msgspec.Struct, frozen=True):
    """A user's use of a file system and the limits; 0 means no limit."""

    path: str
    used_kb: int
    limit_kb: int
    files: int
    file_limit: int


def read_spaces(lines: Iterable[str]) -> dict[str, Space]:
    """Return the rows NAME TOTAL FREE INODES FREE-INODES PATH."""
    found: dict[str, Space] = {}
    for line in lines:
        fields = line.split(" ", 5)
        if len(fields) == 6:
            found[fields[0]] = Space(fields[5], *(number(each) for each in fields[1:5]))
    return found


def read_quotas(lines: Iterable[str]) -> list[Quota]:
    """Return the rows of quota and lfs quota: PATH USED SOFT HARD [GRACE] FILES SOFT HARD [GRACE].

    The grace is absent while the use is below the soft limit; an asterisk marks a use above it.
    """
    found: dict[str, Quota] = {}
    words = " ".join(lines).split()
    while words:
        path, numbers = words.pop(0), []
        while words and not words[0].startswith("/") and not re.fullmatch(r"[\w.-]+:/.*", words[0]):
            numbers.append(words.pop(0))
        counts = [int(each.rstrip("*")) for each in numbers if re.fullmatch(r"[0-9]{1,18}\*?", each)]
        if path.startswith("/") or ":/" in path:
            used, soft, hard, files, soft_files, hard_files = (*counts, 0, 0, 0, 0, 0, 0)[:6]
            found[path] = Quota(path, used, soft or hard, files, soft_files or hard_files)
    return list(found.values())


def number(text: str) -> int | None:
    """Return a number, or None if the text is not one."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None
