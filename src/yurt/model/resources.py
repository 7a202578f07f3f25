"""Parses durations, memory sizes, GPU counts and generic resources. Pure."""

from __future__ import annotations

import re

_CLOCK = re.compile(r"(?:(?P<days>\d+)-)?(?P<fields>\d+(?::\d+){0,2})", re.ASCII)
_SPAN = re.compile(r"(?:(?P<d>\d+)d)?(?:(?P<h>\d+)h)?(?:(?P<m>\d+)m)?(?:(?P<s>\d+)s)?", re.IGNORECASE | re.ASCII)
_MEMORY = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[kmgt]?)i?b?", re.IGNORECASE | re.ASCII)
_GPUS = re.compile(r"(?:gpu:)?(?:(?P<type>[A-Za-z][\w.-]*)(?::(?P<count>\d+))?|(?P<bare>\d+))", re.ASCII)

_GRES = re.compile(r"[A-Za-z][\w.-]*(?::[A-Za-z][\w.-]*)?(?::\d+[kmgt]?)?", re.IGNORECASE | re.ASCII)

_MB = {"k": 1 / 1024, "": 1, "m": 1, "g": 1024, "t": 1024 * 1024}


def parse_time(value: str | int) -> int:
    """Return minutes, rounded up, from minutes, 90m, 2h, 1d, 1h30m, or Slurm's MM:SS, HH:MM:SS, D-HH, D-HH:MM[:SS].

    ValueError says what the value must be.
    """
    text = str(value).strip()
    seconds = _clock(text) if _CLOCK.fullmatch(text) else _span(text)
    if not seconds or isinstance(value, bool):
        raise ValueError("must be a positive duration such as 90 (minutes), 2h, 1d, 12:00:00 or 1-12:00:00")
    return -(-seconds // 60)


def parse_seconds(value: str | int) -> int:
    """Return seconds, from the same notations. ValueError says what the value must be."""
    text = str(value).strip()
    seconds = _clock(text) if _CLOCK.fullmatch(text) else _span(text)
    if not seconds or isinstance(value, bool):
        raise ValueError("must be a positive duration such as 90s, 2m or 00:02:00")
    return seconds


def _clock(text: str) -> int:
    found = _CLOCK.fullmatch(text)
    assert found
    fields = [int(field) for field in found["fields"].split(":")]
    if found["days"] is not None:  # after days, the first field is hours
        hours, minutes, seconds = [*fields, 0, 0][:3]
        return int(found["days"]) * 86400 + hours * 3600 + minutes * 60 + seconds
    if len(fields) == 3:
        return fields[0] * 3600 + fields[1] * 60 + fields[2]
    minutes, seconds = [*fields, 0][:2]
    return minutes * 60 + seconds


def _span(text: str) -> int:
    found = _SPAN.fullmatch(text)
    if found is None:
        return 0
    return sum(int(found[unit] or 0) * size for unit, size in {"d": 86400, "h": 3600, "m": 60, "s": 1}.items())


def parse_memory(value: str | int) -> int:
    """Return MB, rounded up, from 4096, 512k, 4096M, 8G, 8GB, 8GiB, 1T; 0 means the whole node, as in Slurm.

    ValueError says what the value must be.
    """
    found = _MEMORY.fullmatch(str(value).strip())
    if found is None or isinstance(value, bool):
        raise ValueError("must be a memory size such as 4096 (MB), 512M, 8G or 1T")
    exact = float(found["number"]) * _MB[found["unit"].lower()]
    return -int(-exact // 1)


def parse_gpus(value: str | int) -> tuple[str | None, int]:
    """Return (type, count) from 2, a100 or a100:2; the type is None for any type.

    ValueError says what the value must be.
    """
    found = _GPUS.fullmatch(str(value).strip())
    if found is None or isinstance(value, bool):
        raise ValueError("must be a number of GPUs such as 2, or a type and a number such as a100:2")
    if found["bare"] is not None:
        return None, int(found["bare"])
    return found["type"], int(found["count"] or 1)


def parse_gres(value: str) -> str | None:
    """Return the GPUs in a list of generic resources, as `parse_gpus` reads them; None if it lists none.

    ValueError says what the value must be.
    """
    parts = value.strip().split(",")
    gpus = [part.partition(":")[2] or "1" for part in parts if part.partition(":")[0] == "gpu"]
    if not all(_GRES.fullmatch(part) for part in parts) or len(gpus) > 1:
        raise ValueError("must be a list of resources such as gpu:2, gpu:a100:2 or gpu:1,lustre:1")
    return gpus[0] if gpus else None
