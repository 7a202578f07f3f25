"""Task numbers as ranges behave like sets of numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yurt.model import tasks

NUMBERS = st.sets(st.integers(0, 60))


@given(NUMBERS, NUMBERS)
def test_ranges_behave_like_sets(some: set[int], others: set[int]) -> None:
    text, less = tasks.ranges(some), tasks.ranges(others)
    assert tasks.without(text, less) == tasks.ranges(some - others)
    assert tasks.with_more(text, others) == tasks.ranges(some | others)
    assert tasks.count(text) == len(some)
    within = tasks.Within(text, 100)
    assert {number for number in range(200) if number in within} == {number + 100 for number in some}


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("", []),
        ("7", [(7, 7)]),
        ("8-99%4", [(8, 99)]),
        ("0-8:4", [(0, 0), (4, 4), (8, 8)]),
        ("5,4,1-2", [(1, 2), (4, 5)]),
        ("1,2,3", [(1, 3)]),
    ],
)
def test_as_slurm_writes_them(text: str, spans: list[tuple[int, int]]) -> None:
    assert tasks.spans(text) == spans


def test_large_ranges_are_not_expanded() -> None:
    assert len(tasks.spans(tasks.without("0-999999999", "5-999999998"))) == 2
    assert 12345678 in tasks.Within("0-999999999")
