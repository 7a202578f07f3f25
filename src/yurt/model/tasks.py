"""Numbers of tasks as ranges, and the groups in which they are submitted. Pure."""

from __future__ import annotations

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
