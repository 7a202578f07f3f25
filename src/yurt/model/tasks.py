"""Numbers of tasks as ranges, and the groups in which they are submitted. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator


def ranges(numbers: Iterable[int]) -> str:
    """Numbers as sbatch has them: 0-3,7,9-12."""
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
    """The numbers of such a text. A limit on how many run at a time, %N, is passed over; so are steps, as in 0-8:4."""
    for part in text.partition("%")[0].split(","):
        span, _, step = part.partition(":")
        first, _, last = span.partition("-")
        if first.isdigit():
            yield from range(int(first), int(last or first) + 1, int(step) if step.isdigit() else 1)


class Within:
    """Whether numbers are in such a text (to each of which `offset` is added), without going through all of them."""

    def __init__(self, text: str, offset: int = 0) -> None:
        self.spans = [(first + offset, last + offset) for first, last in spans(text)]

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self.spans, number, key=lambda span: span[0]) - 1
        return at >= 0 and number <= self.spans[at][1]


def spans(text: str) -> list[tuple[int, int]]:
    """The first and the last number of each range, in order; what touches is one. As many as there are parts."""
    found: list[tuple[int, int]] = []
    for part in text.partition("%")[0].split(","):
        span, _, step = part.partition(":")
        first, _, last = span.partition("-")
        if step.isdigit() and int(step) > 1:
            found += [(number, number) for number in numbers(part)]
        elif first.isdigit():
            found.append((int(first), int(last or first)))
    return _merged(found)


def count(text: str) -> int:
    """How many numbers there are in such a text."""
    return sum(last - first + 1 for first, last in spans(text))


def with_more(text: str, more: Iterable[int]) -> str:
    """Such a text with more numbers."""
    return _written(_merged([*spans(text), *((number, number) for number in more)]))


def without(text: str, less: str) -> str:
    """Such a text without the numbers of another one."""
    found: list[tuple[int, int]] = []
    gone = spans(less)
    at = 0
    for first, last in spans(text):
        begin = first
        while at < len(gone) and gone[at][0] <= last:
            if gone[at][0] > begin:
                found.append((begin, gone[at][0] - 1))
            begin = max(begin, gone[at][1] + 1)
            if gone[at][1] > last:  # it reaches into the next one too
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
    """Tasks, each with the number of the start it is to make, as groups of START:OFFSET:TASKS.

    No number in a group reaches `largest`, the most that an array of the site may hold.
    """
    found: dict[tuple[int, int], list[int]] = {}
    for number, start in waiting:
        offset = number // largest * largest
        found.setdefault((start, offset), []).append(number - offset)
    limit = f"%{parallel}" if parallel else ""
    return [f"{start}:{offset}:{ranges(each)}{limit}" for (start, offset), each in sorted(found.items())]


def of_group(group: str) -> list[int]:
    """The tasks of a group."""
    _start, offset, text = group.split(":", 2)
    return [int(offset) + number for number in numbers(text)]
