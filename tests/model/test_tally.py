"""A sweep in one line: the bar and the text at any width."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from yurt.model import tally
from yurt.model.run import State

HALF = {"completed": 37, "running": 2, "failed": 1}
STATES = State.__args__  # type: ignore[attr-defined]


def bar(counts: dict[str, int], width: int) -> str:
    return "".join(part for _state, part in tally.bar(counts, width))


def test_words() -> None:
    assert tally.words(HALF) == "37 completed, 2 running, 1 failed of 40"
    assert tally.words({"failed": 1, "completed": 37, "running": 2}) == tally.words(HALF)
    assert tally.words({"queued": 3}) == "3 queued of 3"


def test_the_text_is_shortened_to_fit() -> None:
    assert tally.brief(HALF, 80) == "37/40 done, 2 running, 1 failed"
    assert tally.brief(HALF, 30) == "37/40 done, 1 failed"
    assert tally.brief(HALF, 16) == "37/40, 1 failed"
    assert tally.brief(HALF, 8) == "37/40"
    assert tally.brief({"completed": 1, "timeout": 2, "lost": 1}, 20) == "1/4 done, 3 failed"


def test_a_bar() -> None:
    assert bar({"completed": 5, "running": 2, "queued": 3}, 10) == "━━━━━╸╸───"
    assert bar({"completed": 9, "failed": 1}, 11) == "━" * 10 + "x"
    assert bar({"completed": 4}, 6) == "━━━━━━"
    assert bar({"completed": 998, "failed": 1, "queued": 1}, 8) == "━━━━━━x─"
    assert tally.bar({"timeout": 1}, 4) == [("failed", "xxxx")]


def test_the_bar_is_dropped_last() -> None:
    assert tally.drawn(HALF, 80) == (tally.bar(HALF, 20), "37/40 done, 2 running, 1 failed")
    assert tally.drawn(HALF, 37) == (tally.bar(HALF, 4), "37/40 done, 2 running, 1 failed")
    assert tally.drawn(HALF, 36) == (tally.bar(HALF, 14), "37/40 done, 1 failed")
    assert tally.drawn(HALF, 10) == ([], "37/40")


@given(
    st.dictionaries(st.sampled_from(STATES), st.integers(1, 10**6), min_size=1),
    st.integers(1, 120),
)
def test_it_fits_and_hides_no_state(counts: dict[str, int], width: int) -> None:
    parts, said = tally.drawn(counts, width)
    marks = sum(len(part) for _state, part in parts)
    assert marks + len(said) + (2 if parts else 0) <= width
    assert all(len(part) for _state, part in parts)
    groups = {name for name, states, _mark in tally.GROUPS if any(state in counts for state in states)}
    if marks >= len(groups) and parts:
        assert {state for state, _part in parts} == groups
    assert len(bar(counts, width)) == width or width < len(groups)


def test_the_most_frequent_reason_of_failed_tasks() -> None:
    ended = [("failed", "exit code 2"), ("timeout", "exit code 1"), ("completed", "x"), ("cancelled", "x")]
    assert tally.main_reason(ended) == "exit code 1"
    assert tally.main_reason([*ended, ("failed", "exit code 2")]) == "exit code 2"
    assert tally.main_reason([("completed", ""), ("failed", "")]) == ""
