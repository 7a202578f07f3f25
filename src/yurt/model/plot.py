"""Text plots: points if every x is a number, else bars. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from yurt.model import params
from yurt.model.sweep_table import number

DECADES = 2
"""An axis that spans more powers of ten than this is logarithmic."""

MEAN, RANGE, BAR = "•", "│", "━"


class Point(NamedTuple):
    """All y values of one x."""

    x: Any
    values: list[float]

    @property
    def mean(self) -> float:
        mean = sum(value / len(self.values) for value in self.values)
        return min(max(mean, min(self.values)), max(self.values))  # rounding must not leave the range


class Axis(NamedTuple):
    """The range of an axis, and whether it is logarithmic."""

    low: float
    high: float
    log: bool

    def share(self, value: float) -> float:
        """Return the position of a value on the axis, from 0 to 1."""
        if self.log:
            return (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        # Halved, because the span of very large numbers overflows a float.
        span = self.high / 2 - self.low / 2
        return (value / 2 - self.low / 2) / span if span else 0.5

    def cell(self, value: float, cells: int) -> int:
        return min(cells - 1, max(0, round(self.share(value) * (cells - 1))))


class Drawing(NamedTuple):
    """A plot, and which axes are logarithmic."""

    lines: list[str]
    log_x: bool
    log_y: bool


def gathered(pairs: Iterable[tuple[Any, Any]]) -> list[Point]:
    """Group pairs of x and y into points, ordered by first occurrence; skip y values that are not finite numbers."""
    found: dict[str, Point] = {}
    for x, y in pairs:
        value = number(y)
        if x is not None and value is not None and math.isfinite(value):
            key = params.as_text(x)
            found.setdefault(key, Point(x, [])).values.append(value)
    return list(found.values())


def draw(points: Sequence[Point], width: int, height: int) -> Drawing:
    """Draw points if every x is a number, else bars. There must be at least one point."""
    xs = [number(point.x) for point in points]
    if any(x is None or not math.isfinite(x) for x in xs):
        return _bars(points, width)
    return _scatter([(x, point) for x, point in zip(xs, points, strict=True) if x is not None], width, height)


def axis(values: Sequence[float]) -> Axis:
    low, high = min(values), max(values)
    return Axis(low, high, log=low > 0 and math.log10(high) - math.log10(low) > DECADES)


def ticks(on: Axis, most: int) -> list[float]:
    """Return at most `most` round numbers on an axis; its two ends if there are none."""
    if on.low == on.high:
        return [on.low]
    if on.log:
        first, last = math.ceil(math.log10(on.low) - 1e-9), math.floor(math.log10(on.high) + 1e-9)
        step = max(1, math.ceil((last - first + 1) / most))
        return [10.0**power for power in range(first, last + 1, step)]
    rough = (on.high / 2 - on.low / 2) / max(1, most - 1) * 2
    if not 1e-290 < rough < 1e290 or rough < max(abs(on.low), abs(on.high)) * 1e-12:  # below float resolution
        return [on.low, on.high]
    unit = 10.0 ** math.floor(math.log10(rough))
    step_by = next(unit * each for each in (1, 2, 5, 10) if unit * each >= rough * (1 - 1e-9))
    first = math.ceil(on.low / step_by - 1e-9)
    found = [round(at * step_by, 12 - math.floor(math.log10(step_by))) for at in range(first, first + most + 1)]
    return [value for value in found if value <= on.high + step_by * 1e-9] or [on.low, on.high]


def label(value: float) -> str:
    """Return a number as short text."""
    return f"{value:.6g}"


def words(point: Point) -> str:
    """Return the y values of a point in words: 0.5, or their mean and range."""
    if len(point.values) == 1:
        return label(point.mean)
    low, high = label(min(point.values)), label(max(point.values))
    return f"mean {label(point.mean)}, from {low} to {high}, {len(point.values)} tasks"


def _scatter(points: Sequence[tuple[float, Point]], width: int, height: int) -> Drawing:
    every = [value for _x, point in points for value in point.values]
    across, up = axis([x for x, _point in points]), axis(every)
    marks = levels(up, height)
    left = max(len(text) for text in marks.values())
    cells = max(8, width - left - 4)
    grid = [[" "] * (cells + 2) for _row in range(height)]
    for x, point in points:
        at = 1 + across.cell(x, cells)
        low, high = up.cell(min(point.values), height), up.cell(max(point.values), height)
        for row in range(low, high + 1):
            if grid[row][at] != MEAN:
                grid[row][at] = RANGE
        grid[up.cell(point.mean, height)][at] = MEAN
    lines = [
        f"{marks.get(row, ''):>{left}} {'┤' if row in marks else '│'}{''.join(grid[row])}".rstrip()
        for row in reversed(range(height))
    ]
    return Drawing([*lines, *foot(across, [x for x, _point in points], cells, left)], across.log, up.log)


def levels(up: Axis, height: int, dots: int = 1) -> dict[int, str]:
    """Return the labels of the y axis, by row; each row has so many dots."""
    found = ticks(up, max(2, height // 3))
    values = found if len(found) > 1 else [up.low, up.high]
    return {up.cell(value, height * dots) // dots: label(value) for value in values}


def foot(across: Axis, xs: Sequence[float], cells: int, left: int) -> list[str]:
    """Return the x axis and the line with its labels, to the right of `left` columns."""
    line, names = _foot(across, xs, cells)
    return [f"{'':{left}} └{line}", f"{'':{left}}  {names}".rstrip()]


def _foot(across: Axis, xs: Sequence[float], cells: int) -> tuple[str, str]:
    """Return the x axis and its labels: the x values, or ticks if they do not fit."""
    line, names = ["─"] * (cells + 2), [" "] * (cells + 2)
    free = 0
    wanted = sorted(set(xs))
    if sum(len(label(x)) + 2 for x in wanted) > cells:
        wanted = ticks(across, max(2, cells // 12))
    for x in wanted:
        at, text = 1 + across.cell(x, cells), label(x)
        start = max(0, min(at - len(text) // 2, cells + 2 - len(text)))
        if start >= free:
            names[start : start + len(text)] = text
            line[at] = "┴"
            free = start + len(text) + 2
    return "".join(line), "".join(names[: cells + 2])


def _bars(points: Sequence[Point], width: int) -> Drawing:
    """Draw one bar per x, from zero, or from below the smallest value on a logarithmic axis."""
    means = [point.mean for point in points]
    over = axis(means)
    span = Axis(over.low / 10 or over.low, over.high, log=True) if over.log else axis([0.0, *means])
    names = [_short(params.as_text(point.x), max(8, width // 3)) for point in points]
    labels = [_summary(point) for point in points]
    left, right = max(map(len, names)), max(map(len, labels))
    cells = max(8, width - left - right - 4)
    zero = 0 if over.log else span.cell(0.0, cells + 1)
    lines = []
    for name, point, text in zip(names, points, labels, strict=True):
        end = span.cell(point.mean, cells + 1)
        first, last = min(zero, end), max(zero, end)
        lines.append(f"{name:{left}}  {' ' * first}{BAR * (last - first):{cells - first}}  {text}")
    return Drawing(lines, log_x=False, log_y=over.log)


def _summary(point: Point) -> str:
    if len(point.values) == 1:
        return label(point.mean)
    low, high = min(point.values), max(point.values)
    return f"{label(point.mean)} ({label(low)} to {label(high)}, {len(point.values)} tasks)"


def _short(text: str, width: int) -> str:
    shown = "".join(character if character.isprintable() else "�" for character in text)
    return shown if len(shown) <= width else shown[: width - 1] + "…"
