"""Parses durations, memory sizes, GPU counts and generic resources. Pure."""

from __future__ import annotations

import re

_TYPE = r"(?a)[A-Za-z][\w.-]*"

_GRES = r"(?ai)[A-Za-z][\w.-]*(?::[A-Za-z][\w.-]*)?(?::\d+[kmgt]?)?"

_MB = {"k": 1 / 1024, "": 1, "m": 1, "g": 1024, "t": 1024 * 1024}


def parse_time(value: str | int) -> int:
    """Return minutes, rounded up, from minutes, 90m, 2h, 1d, 1h30m, or Slurm's MM:SS, HH:MM:SS, D-HH, D-HH:MM[:SS].

    ValueError says what the value must be.
    """
    text = str(value).strip()
    seconds = _clock(text) or _span(text)
    if not seconds or isinstance(value, bool):
        raise ValueError("must be a positive duration such as 90 (minutes), 2h, 1d, 12:00:00 or 1-12:00:00")
    return -(-seconds // 60)


def parse_seconds(value: str | int) -> int:
    """Return seconds, from the same notations. ValueError says what the value must be."""
    text = str(value).strip()
    seconds = _clock(text) or _span(text)
    if not seconds or isinstance(value, bool):
        raise ValueError("must be a positive duration such as 90s, 2m or 00:02:00")
    return seconds


def parse_wait(value: str | int) -> int:
    """Return seconds, from the same notations; 0 is allowed."""
    return 0 if str(value).strip() in ("0", "0s", "0m") else parse_seconds(value)


def _clock(text: str) -> int:
    """Return the seconds of minutes or one of Slurm's notations; 0 for another text."""
    days, dash, rest = text.rpartition("-")
    texts = rest.split(":")
    if len(texts) > 3 or not all(_is_number(each) for each in ([days, *texts] if dash else texts)):
        return 0
    fields = [int(each) for each in texts]
    if dash:  # after days, the first field is hours
        hours, minutes, seconds = [*fields, 0, 0][:3]
        return int(days) * 86400 + hours * 3600 + minutes * 60 + seconds
    if len(fields) == 3:
        return fields[0] * 3600 + fields[1] * 60 + fields[2]
    minutes, seconds = [*fields, 0][:2]
    return minutes * 60 + seconds


def _span(text: str) -> int:
    """Return the seconds of a text such as 1h30m; 0 for another text."""
    seconds, rest = 0, text.lower()
    for unit, size in {"d": 86400, "h": 3600, "m": 60, "s": 1}.items():
        number, found, after = rest.partition(unit)
        if found and _is_number(number):
            seconds, rest = seconds + int(number) * size, after
    return 0 if rest else seconds


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def leading_number(text: str) -> int | None:
    """Return the number with which a text begins, such as 2 for the range 2-4; None if there is none."""
    digits = text[: len(text) - len(text.lstrip("0123456789"))]
    return int(digits) if digits else None


def parse_memory(value: str | int) -> int:
    """Return MB, rounded up, from 4096, 512k, 4096M, 8G, 8GB, 8GiB, 1T; 0 means the whole node, as in Slurm.

    ValueError says what the value must be.
    """
    text = str(value).strip().lower().removesuffix("b").removesuffix("i")
    unit = text[-1:] if text[-1:] in _MB else ""
    whole, point, fraction = text.removesuffix(unit).rstrip().partition(".")
    if not _is_number(whole) or (point and not _is_number(fraction)) or isinstance(value, bool):
        raise ValueError("must be a memory size such as 4096 (MB), 512M, 8G or 1T")
    exact = float(f"{whole}.{fraction or 0}") * _MB[unit]
    return -int(-exact // 1)


def parse_gpus(value: str | int) -> tuple[str | None, int]:
    """Return (type, count) from 2, a100 or a100:2; the type is None for any type.

    ValueError says what the value must be.
    """
    text = str(value).strip().removeprefix("gpu:")
    if _is_number(text) and not isinstance(value, bool):
        return None, int(text)
    kind, colon, count = text.partition(":")
    if not re.fullmatch(_TYPE, kind) or (colon and not _is_number(count)) or isinstance(value, bool):
        raise ValueError("must be a number of GPUs such as 2, or a type and a number such as a100:2")
    return kind, int(count or 1)


def parse_gres(value: str) -> str | None:
    """Return the GPUs in a list of generic resources, as `parse_gpus` reads them; None if it lists none.

    ValueError says what the value must be.
    """
    parts = value.strip().split(",")
    gpus = [part.partition(":")[2] or "1" for part in parts if part.partition(":")[0] == "gpu"]
    if not all(re.fullmatch(_GRES, part) for part in parts) or len(gpus) > 1:
        raise ValueError("must be a list of resources such as gpu:2, gpu:a100:2 or gpu:1,lustre:1")
    return gpus[0] if gpus else None
