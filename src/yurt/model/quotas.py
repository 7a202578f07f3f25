"""Reads the output of `df`, `quota` and `lfs quota`. Pure; a line that is not understood is left out."""

from __future__ import annotations

import re
from collections.abc import Iterable

from yurt.model.disk import number
from yurt.model.storage import Quota

KB = 1024

NUMBER = re.compile(r"\[?([0-9]{1,18}(?:\.[0-9]{1,18})?)([kKMGTPE]?)\*?\]?")
"""A number of `quota` or `lfs quota`: `*` marks one over its quota, brackets one that may be incomplete."""

UNITS = {"": 1, "k": KB, "K": KB, "M": KB**2, "G": KB**3, "T": KB**4, "P": KB**5, "E": KB**6}


def read_amount(text: str) -> tuple[int | None, int | None] | None:
    """Return the bytes and the files of an amount: `1T`, `500000 files` or `1T 500000 files`; None if it is none."""
    found = re.fullmatch(r"\s*(\d{1,9}(?:\.\d+)?\s*[KMGTkmgt]i?[Bb]?)?[\s,]*(?:(\d{1,15})\s*files)?\s*", text)
    if found is None or not any(found.groups()):
        return None
    size = found[1].replace(" ", "").rstrip("Bb").rstrip("i").upper() if found[1] else ""
    return int(float(size[:-1]) * UNITS[size[-1]]) if size else None, int(found[2]) if found[2] else None


def read_lfs(text: str) -> Quota | None:
    """Return the quota in the output of `lfs quota`, with or without its titles; None if there is none.

    FILESYSTEM KBYTES QUOTA LIMIT GRACE FILES QUOTA LIMIT GRACE; a long file system is on a line of its own.
    """
    words: list[str] = []
    for line in text.splitlines():
        fields = line.split()
        if not fields or fields[0] in ("Disk", "Filesystem") or fields[0].endswith(":"):
            continue
        if fields[0].startswith("/"):
            words = fields[1:]
        elif NUMBER.fullmatch(fields[0]) and len(words) < 8:
            words += fields
        if len(words) >= 8:
            return _quota(words[:8])
    return None


def read_quota(text: str) -> dict[str, Quota]:
    """Return the quotas in the output of `quota -w`, by file system.

    FILESYSTEM BLOCKS QUOTA LIMIT [GRACE] FILES QUOTA LIMIT [GRACE]: a grace is there only for a value over its quota,
    which `*` marks.
    """
    found = {}
    for line in text.splitlines():
        name, *words = line.split() or [""]
        if len(words) < 6 or not NUMBER.fullmatch(words[0]):
            continue
        blocks = words[:3] + ([] if words[0].endswith("*") else [""])
        rest = words[4:] if words[0].endswith("*") else words[3:]
        blocks = ([*blocks, ""])[:4]
        quota = _quota([*blocks, *(rest + [""] * 4)[:4]])
        if quota is not None:
            found[name] = quota
    return found


def read_df(lines: Iterable[str]) -> tuple[str, int | None, int | None]:
    """Return the device, the total and the available number of the last line of `df -P`; without a unit."""
    last = ""
    for line in lines:
        last = line if line.strip() else last
    fields = last.split()
    if len(fields) < 6:
        return "", None, None
    at = next((at for at in range(len(fields)) if fields[at].endswith("%") or fields[at] == "-"), len(fields) - 2)
    total, free = (fields[at - 3], fields[at - 1]) if at >= 4 else ("", "")
    return " ".join(fields[: max(1, at - 3)]), _whole(total), _whole(free)


def _quota(words: list[str]) -> Quota | None:
    """Return the quota of eight words: blocks, their soft and hard limit, grace; files, soft, hard, grace."""
    used, files = _bytes(words[0]), _count(words[4])
    if used is None and files is None:
        return None
    return Quota(
        used=used,
        limit=_bytes(words[1]) or _bytes(words[2]) or None,
        files=files,
        files_limit=_count(words[5]) or _count(words[6]) or None,
    )


def _bytes(word: str) -> int | None:
    """Return bytes: a number without a unit is in kB."""
    found = NUMBER.fullmatch(word)
    return int(float(found[1]) * UNITS[found[2] or "k"]) if found else None


def _count(word: str) -> int | None:
    found = NUMBER.fullmatch(word)
    return int(float(found[1]) * {"": 1, "k": 1000, "K": 1000, "M": 10**6}.get(found[2], 10**9)) if found else None


def _whole(word: str) -> int | None:
    return number(word)
