"""Slurm's notation for several nodes, such as n[1-3,7],gpu05. Pure."""

from __future__ import annotations

import re


def contains(expression: str, node: str) -> bool:
    """Return whether a list of nodes has this one. An expression of another form contains nothing."""
    if expression.count("[") != expression.count("]"):
        return False
    return any(_matches(part, node) for part in re.findall(r"(?:[^,\[\]]|\[[^\]]*\])+", expression))


def _matches(part: str, node: str) -> bool:
    """Return whether a part without commas outside of brackets stands for this node."""
    pieces = re.split(r"\[([^\]]*)\]", part)
    pattern = "".join(re.escape(piece) if at % 2 == 0 else r"(\d+)" for at, piece in enumerate(pieces))
    found = re.fullmatch(pattern, node)
    return found is not None and all(map(_within, pieces[1::2], found.groups()))


def _within(ranges: str, number: str) -> bool:
    for each in ranges.split(","):
        first, dash, last = each.partition("-")
        last = last if dash else first
        if first.isdigit() and last.isdigit() and len(number) >= len(first) and int(first) <= int(number) <= int(last):
            return True
    return False
