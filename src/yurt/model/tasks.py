"""Task numbers as ranges such as 0-3,7, and the groups in which tasks are submitted. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

MOST = 10_000_000
"""Numbers that one range may have: a site could name more than fit into memory. An array of Slurm has fewer."""


MOST_SPANS = 1_000_000
"""Ranges that a text may have, of which each number of a range with a step is one."""


def ranges(numbers: Iterable[int]) -> str:
    """Return numbers in sbatch notation: 0-3,7,9-12."""
    parts: list[str] = []
    first = last = None
    for number in sorted(numbers):
        if last is not None and number == last + 1:
            last = number
            continue
        if first is not None:
            parts.append(_part(first, last))
        first = last = number
    if first is not None:
        parts.append(_part(first, last))
    return ",".join(parts)


def _part(first: int, last: int | None) -> str:
    return str(first) if first == last else f"{first}-{last}"


def numbers(text: str) -> Iterator[int]:
    """Yield the numbers of ranges. Steps such as 0-8:4 are expanded; a limit on concurrent tasks, %N, is ignored."""
    for part in text.partition("%")[0].split(","):
        span, _, step = part.partition(":")
        first, _, last = span.partition("-")
        if first.isdigit():
            each = range(int(first), int(last or first) + 1, int(step) if step.isdigit() else 1)
            if len(each) > MOST:
                raise ValueError(f"{part} has more than {MOST} numbers")
            yield from each


def below(text: str, count: int) -> Iterator[int]:
    """Yield the numbers of ranges that are below `count`, each once."""
    for first, last in spans(text):
        yield from range(first, min(last + 1, count))


class Within:
    """A membership test for ranges (plus `offset`) that does not expand them."""

    def __init__(self, text: str, offset: int = 0) -> None:
        self.spans = [(first + offset, last + offset) for first, last in spans(text)]

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self.spans, number, key=lambda span: span[0]) - 1
        return at >= 0 and number <= self.spans[at][1]


def spans(text: str) -> list[tuple[int, int]]:
    """Return the first and last number of each range, sorted, with adjacent ranges merged."""
    found: list[tuple[int, int]] = []
    for part in text.partition("%")[0].split(","):
        span, _, step = part.partition(":")
        first, _, last = span.partition("-")
        if step.isdigit() and int(step) > 1:
            found += [(number, number) for number in numbers(part)]
            if len(found) > MOST_SPANS:
                raise ValueError(f"{text[:40]} has more than {MOST_SPANS} ranges")
        elif first.isdigit():
            found.append((int(first), int(last or first)))
    return _merged(found)


def count(text: str) -> int:
    """Return how many numbers the ranges contain."""
    return sum(last - first + 1 for first, last in spans(text))


def with_more(text: str, more: Iterable[int]) -> str:
    """Return the ranges with more numbers added."""
    return _written(_merged([*spans(text), *((number, number) for number in more)]))


def without(text: str, less: str) -> str:
    """Return the ranges without the numbers of other ranges."""
    found: list[tuple[int, int]] = []
    removed = spans(less)
    at = 0
    for first, last in spans(text):
        begin = first
        while at < len(removed) and removed[at][0] <= last:
            if removed[at][0] > begin:
                found.append((begin, removed[at][0] - 1))
            begin = max(begin, removed[at][1] + 1)
            if removed[at][1] > last:  # it may overlap the next range too
                break
            at += 1
        if begin <= last:
            found.append((begin, last))
    return _written(found)


def _merged(found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(found):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        elif first <= last:
            merged.append((first, last))
    return merged


def _written(found: Iterable[tuple[int, int]]) -> str:
    return ",".join(_part(first, last) for first, last in found)


def groups(waiting: Iterable[tuple[int, int]], largest: int, parallel: int | None = None) -> list[str]:
    """Return groups START:OFFSET:TASKS for tasks, each given with the number of its next start.

    Numbers in a group are below `largest`, the site's maximum array size.
    """
    found: dict[tuple[int, int], list[int]] = {}
    for number, start in waiting:
        offset = number // largest * largest
        found.setdefault((start, offset), []).append(number - offset)
    limit = f"%{parallel}" if parallel else ""
    return [f"{start}:{offset}:{ranges(each)}{limit}" for (start, offset), each in sorted(found.items())]


def of_group(group: str) -> list[int]:
    """Return the task numbers of a group."""
    _start, offset, text = group.split(":", 2)
    return [int(offset) + number for number in numbers(text)]
