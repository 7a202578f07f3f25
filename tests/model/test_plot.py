"""Plots: positions of values, logarithmic axes, skipped values."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yurt.model import plot


def test_points_of_one_x_are_one_point() -> None:
    pairs = [(0.1, 1), (0.01, 4.0), (0.1, 3), (0.1, None), (None, 5), (0.1, "text"), (0.1, math.inf), (0.1, math.nan)]
    points = plot.gathered(pairs)
    assert [(point.x, point.values, point.mean) for point in points] == [(0.1, [1, 3], 2.0), (0.01, [4.0], 4.0)]


@pytest.mark.parametrize(
    ("values", "log"),
    [([1, 100], False), ([1, 101], True), ([0.001, 1], True), ([0, 1000], False), ([-5, 1000], False), ([3, 3], False)],
)
def test_an_axis_is_logarithmic_over_two_decades(values: list[float], log: bool) -> None:
    assert plot.axis(values).log is log


def test_cells() -> None:
    linear, log = plot.Axis(0, 10, log=False), plot.Axis(0.001, 10, log=True)
    assert [linear.cell(value, 11) for value in (0, 1, 5, 10)] == [0, 1, 5, 10]
    assert [log.cell(value, 9) for value in (0.001, 0.01, 0.1, 1, 10)] == [0, 2, 4, 6, 8]
    assert plot.Axis(3, 3, log=False).cell(3, 9) == 4


@pytest.mark.parametrize(
    ("low", "high", "most", "found"),
    [
        (0, 10, 6, [0, 2, 4, 6, 8, 10]),
        (0.12, 0.57, 5, [0.2, 0.4]),
        (-1, 1, 5, [-1, -0.5, 0, 0.5, 1]),
        (5, 5, 5, [5]),
    ],
)
def test_ticks_are_round(low: float, high: float, most: int, found: list[float]) -> None:
    assert plot.ticks(plot.Axis(low, high, log=False), most) == pytest.approx(found)


@pytest.mark.parametrize(("low", "high"), [(-1e6, 1.79e308), (-1.7e308, 1.7e308), (0, 5e-324), (1e20, 1e20 + 20000)])
def test_an_axis_without_round_steps_has_its_ends_as_ticks(low: float, high: float) -> None:
    assert plot.ticks(plot.Axis(low, high, log=False), 5) == [low, high]


def test_a_range_hides_no_mean() -> None:
    """Two x values share a cell: one has its mean where the other has its range."""
    drawing = plot.draw(plot.gathered([(0, 0), (1, 5), (1.001, 3), (1.001, 9), (100, 10)]), 40, 11)
    assert sum(line.count(plot.MEAN) for line in drawing.lines) == 4


def test_ticks_of_a_logarithmic_axis() -> None:
    assert plot.ticks(plot.Axis(0.001, 10, log=True), 9) == pytest.approx([0.001, 0.01, 0.1, 1, 10])
    assert plot.ticks(plot.Axis(1e-9, 1, log=True), 4) == pytest.approx([1e-9, 1e-6, 1e-3, 1])


def test_numbers_over_numbers() -> None:
    drawing = plot.draw(plot.gathered([(1, 0), (2, 10), (3, 4), (3, 6), (3, 5)]), 40, 11)
    assert len(drawing.lines) == 13 and not drawing.log_x and not drawing.log_y
    rows = drawing.lines[:11]
    assert rows[0].startswith("10 ┤") and rows[0].count(plot.MEAN) == 1
    assert rows[10].startswith(" 0 ┤") and rows[10].index(plot.MEAN) < rows[0].index(plot.MEAN)
    at = rows[5].index(plot.MEAN)
    assert [row[at : at + 1] for row in rows[3:8]] == ["", plot.RANGE, plot.MEAN, plot.RANGE, ""]
    assert drawing.lines[12].split() == ["1", "2", "3"]
    assert drawing.lines[12].index("3") == at and drawing.lines[11][at] == "┴"


def test_decades_are_equally_spaced() -> None:
    drawing = plot.draw(plot.gathered([(0.001, 1), (0.01, 1), (0.1, 1), (1, 1)]), 60, 6)
    assert drawing.log_x and not drawing.log_y
    marks = [at for at, character in enumerate(drawing.lines[-2]) if character == "┴"]
    assert len(marks) == 4 and len({b - a for a, b in pairwise(marks)}) == 1


def test_words_are_bars() -> None:
    drawing = plot.draw(plot.gathered([("adam", 2), ("sgd", 4), ("sgd", 6), (True, 0)]), 60, 20)
    lengths = {line.split()[0]: line.count(plot.BAR) for line in drawing.lines}
    assert lengths["true"] == 0 and lengths["sgd"] == pytest.approx(lengths["adam"] * 2.5, abs=1)
    assert drawing.lines[1].endswith("5 (4 to 6, 2 tasks)") and drawing.lines[0].endswith(" 2")
    assert max(map(len, drawing.lines)) <= 60


def test_bars_below_zero_end_where_those_above_begin() -> None:
    drawing = plot.draw(plot.gathered([("a", -5), ("b", 5)]), 60, 20)
    below, above = drawing.lines
    assert below.rindex(plot.BAR) + 1 == above.index(plot.BAR)
    assert below.count(plot.BAR) == pytest.approx(above.count(plot.BAR), abs=1)


number = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(-(10**20), 10**20))


@given(
    st.lists(st.tuples(st.one_of(number, st.text(max_size=30), st.booleans()), number), min_size=1, max_size=30),
    st.integers(40, 200),
    st.integers(6, 30),
)
def test_any_numbers(pairs: list[tuple[object, float]], width: int, height: int) -> None:
    for some in (pairs, [pair for pair in pairs if isinstance(pair[0], int | float) and pair[0] is not True]):
        points = plot.gathered(some)
        if points:
            drawing = plot.draw(points, width, height)
            assert all(line.isprintable() for line in drawing.lines)
            assert "nan" not in "".join(drawing.lines[-1:])
