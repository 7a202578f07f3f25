"""Reads lines of metrics.jsonl. A run writes it, so that it may contain anything. Pure."""

from __future__ import annotations

import math
import re
from typing import Any

import msgspec

from yurt.model.site_words import MALFORMED

NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""What `yurt.log` writes for numbers that JSON lacks."""

LONGEST = 1_000_000
"""Bytes of a line above which it is left out: no row of metrics is so long."""

DEEPEST = 100
"""Maximum nesting of a value: what is nested more deeply could be read, but not always written again."""

_LARGEST = 1 << 64
_decoder = msgspec.json.Decoder(dict[str, Any])


def row(line: bytes) -> dict[str, Any] | None:
    """Return what a line says; None if it is incomplete. An integer that no database can have is a float."""
    if len(line) > LONGEST or _is_deep(line):
        return None
    try:
        found = _decoder.decode(line)
    except MALFORMED:
        return None
    for name, value in found.items():
        if isinstance(value, int) and not -_LARGEST < value < _LARGEST:
            found[name] = number(value)
    return found


def number(value: Any) -> float | None:
    """Return the number that a run logged; None if it logged something else."""
    if isinstance(value, str):
        return NOT_FINITE.get(value)
    if not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _is_deep(line: bytes) -> bool:
    if line.count(b"[") + line.count(b"{") <= DEEPEST:
        return False
    depth = deepest = 0
    for bracket in re.findall(rb"[\[\]{}]", line):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest > DEEPEST
