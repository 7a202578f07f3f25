"""Text plots of curves, several in one frame: in dots of Braille, or with a mark for each curve. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from yurt.model.plot import Axis, axis, foot, label, levels

MARKS = "ox+*#@%&=~^$"
"""The marks of curves, if colours do not tell them apart."""

MOST = len(MARKS)
"""Maximum number of curves in one plot."""

DOTS = ((0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08))
"""The bits of the dots of a Braille character: by column, from the bottom."""

ASCII = str.maketrans("│┤└─┴", "|++-+")

Pair = tuple[float, float]


class Segment(NamedTuple):
    """A part of a line of a plot: its text, and the number of the curve that gives it its colour, or -1."""

    text: str
    curve: int = -1


class CurveDrawing(NamedTuple):
    """A plot of curves."""

    lines: list[list[Segment]]
    log_y: bool


def smoothed(pairs: Sequence[Pair], weight: float) -> list[Pair]:
    """Return the moving average of y that TensorBoard draws: `weight` is the share of the past, from 0 to below 1."""
    if not weight:
        return list(pairs)
    found, past, total = [], 0.0, 0.0
    for x, y in pairs:
        past = past * weight + y * (1 - weight)
        total = total * weight + 1 - weight
        found.append((x, past / total))
    return found


def chosen(last: Sequence[float]) -> list[int]:
    """Return which curves to draw, by their last values: all, or those with the lowest and the highest ones."""
    if len(last) <= MOST:
        return list(range(len(last)))
    order = sorted(range(len(last)), key=lambda at: last[at])
    return sorted([*order[: MOST // 2], *order[-(MOST // 2) :]])


def samples(pairs: Sequence[Pair], most: int) -> list[Pair]:
    """Return at most so many pairs, evenly spaced, with the first and the last."""
    if len(pairs) <= most:
        return list(pairs)
    return [pairs[round(at * (len(pairs) - 1) / (most - 1))] for at in range(most)]


def draw(curves: Sequence[Sequence[Pair]], width: int, height: int, *, braille: bool, ascii_only: bool) -> CurveDrawing:
    """Draw curves of finite numbers in a frame of this size. Each must have at least one point.

    With `braille`, curves are dots and the caller colours them; else each has its mark.
    """
    xs = [x for curve in curves for x, _y in curve]
    across, up = Axis(min(xs), max(xs), log=False), axis([y for curve in curves for _x, y in curve])
    scale = (2, 4) if braille else (1, 1)
    marks = levels(up, height, scale[1])
    left = max(len(text) for text in marks.values())
    cells = max(8, width - left - 4)
    grid: list[list[tuple[int, int]]] = [[(0, -1)] * cells for _row in range(height)]
    for number, curve in enumerate(curves):
        for column, row in _dots(curve, across, up, cells * scale[0], height * scale[1]):
            bits, _curve = grid[row // scale[1]][column // scale[0]]
            bit = DOTS[column % 2][row % 4] if braille else 0
            grid[row // scale[1]][column // scale[0]] = (bits | bit, number)
    lines = []
    for row in reversed(range(height)):
        edge = f"{marks.get(row, ''):>{left}} {'┤' if row in marks else '│'} "
        lines.append([Segment(edge), *_segments(grid[row], braille=braille)])
    lines += [[Segment(line)] for line in foot(across, xs, cells, left)]
    if ascii_only:
        lines = [[Segment(each.text.translate(ASCII), each.curve) for each in line] for line in lines]
    return CurveDrawing(lines, up.log)


def _segments(row: Sequence[tuple[int, int]], *, braille: bool) -> Iterable[Segment]:
    """Join neighbouring cells of one curve."""
    text, last = "", -1
    for bits, number in row:
        if number != last and text:
            yield Segment(text, last)
            text = ""
        last = number
        text += " " if number < 0 else chr(0x2800 + bits) if braille else MARKS[number % MOST]
    if last >= 0:
        yield Segment(text, last)


def _dots(curve: Sequence[Pair], across: Axis, up: Axis, columns: int, rows: int) -> Iterable[tuple[int, int]]:
    """Yield the dots of a curve: of each column from the lowest to the highest value, and lines between columns."""
    before: tuple[int, int] | None = None
    low = high = 0
    for x, y in curve:
        column, row = across.cell(x, columns), up.cell(y, rows)
        if before is None:
            low = high = row
        elif before[0] == column:
            low, high = min(low, row), max(high, row)
        else:
            yield from ((before[0], each) for each in range(low, high + 1))
            yield from _line(before, (column, row))
            low = high = row
        before = (column, row)
    if before is not None:
        yield from ((before[0], each) for each in range(low, high + 1))


def _line(start: tuple[int, int], end: tuple[int, int]) -> Iterable[tuple[int, int]]:
    """Yield the dots between two dots."""
    steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]))
    for at in range(1, steps):
        share = at / steps
        yield round(start[0] + (end[0] - start[0]) * share), round(start[1] + (end[1] - start[1]) * share)


def words(pairs: Sequence[Pair], unit: str, most: int = 6) -> str:
    """Return a curve in words: some of its values, its minimum and its maximum."""
    some = "; ".join(f"{unit} {label(x)}: {label(y)}" for x, y in samples(pairs, most))
    ys = [y for _x, y in pairs]
    return f"{some}; minimum {label(min(ys))}, maximum {label(max(ys))}"


def finite(pairs: Iterable[Pair]) -> list[Pair]:
    """Return the pairs of finite numbers."""
    return [(x, y) for x, y in pairs if math.isfinite(x) and math.isfinite(y)]
