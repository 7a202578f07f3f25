"""Text plots of curves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from yurt.model import curve_plot

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def text(made: curve_plot.CurveDrawing) -> list[str]:
    return ["".join(each.text for each in line).rstrip() for line in made.lines]


def test_curves_have_their_marks_and_axes() -> None:
    rising, falling = [(x, x) for x in range(5)], [(x, 4 - x) for x in range(5)]
    made = curve_plot.draw([rising, falling], 20, 5, braille=False, ascii_only=True)
    assert text(made) == [
        "4 + xxx         ooo",
        "  |    xxx   ooo",
        "  |       xxx",
        "  |    ooo   xxx",
        "0 + ooo         xxx",
        "  +-+---+--+--+---+-",
        "    0   1  2  3   4",
    ]
    assert not made.log_y


def test_axis_is_logarithmic_over_decades() -> None:
    made = curve_plot.draw([[(0, 1), (1, 1e-4)]], 40, 8, braille=True, ascii_only=False)
    assert made.log_y and any(line.lstrip().startswith("0.1 ┤") for line in text(made))


@given(
    st.lists(st.lists(st.tuples(FINITE, FINITE), min_size=1, max_size=30), min_size=1, max_size=5),
    st.integers(30, 200),
    st.integers(4, 30),
    st.booleans(),
)
def test_any_finite_numbers_fit_the_frame(
    curves: list[list[tuple[float, float]]], width: int, height: int, braille: bool
) -> None:
    made = curve_plot.draw(curves, width, height, braille=braille, ascii_only=not braille)
    lines = text(made)
    assert len(lines) == height + 2 and max(map(len, lines)) <= max(width, 40)
    assert braille or all(line.isascii() for line in lines)
    drawn = {each.curve for line in made.lines for each in line}
    assert drawn <= {-1, *range(len(curves))} and len(drawn) > 1


def test_smoothing_is_that_of_tensorboard() -> None:
    pairs = [(0.0, 1.0), (1.0, 0.0), (2.0, 0.0)]
    assert curve_plot.smoothed(pairs, 0) == pairs
    found = [round(y, 6) for _x, y in curve_plot.smoothed(pairs, 0.5)]
    assert found == [1.0, 0.333333, 0.142857]


def test_of_many_curves_the_extremes_are_drawn() -> None:
    assert curve_plot.chosen([1.0] * 12) == list(range(12))
    assert curve_plot.chosen([float(each) for each in range(100)]) == [*range(6), *range(94, 100)]


def test_samples_keep_the_ends() -> None:
    pairs = [(float(x), 0.0) for x in range(100)]
    assert [x for x, _y in curve_plot.samples(pairs, 4)] == [0, 33, 66, 99]
