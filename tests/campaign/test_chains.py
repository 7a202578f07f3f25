"""The judge of chains sees what it must; and a seed draws the same twice."""

from __future__ import annotations

import pytest

from tests.campaign.chains import FAULTS, Chain, draw, read, violations
from yurt.model.run import Status

CHAIN = Chain(number=1, cluster="alpha", fault="job", steps=4, every=2, on_signal=False, strike=2, seconds=15.0)
DONE = Status(state="completed", restarts=1)

FIRST = "begin 0 0 n1 1.0\nstep 1 0 n1 2.0\nstep 2 0 n1 3.0\nsaved 2 0 n1 3.1\nstep 3 0 n1 4.0\n"
SECOND = "begin 2 1 n2 9.0\nstep 3 1 n2 10.0\nstep 4 1 n2 11.0\nsaved 4 1 n2 11.1\nend 4 1 n2 11.2\n"


def test_what_is_right() -> None:
    assert violations(CHAIN, read(FIRST + SECOND), DONE) == []
    more = "begin 3 1 n2 9.0\nstep 4 1 n2 10.0\nsaved 4 1 n2 11.0\n"
    assert violations(CHAIN, read(FIRST + more), DONE) == [], "it was killed before it could say that it had saved"
    assert violations(CHAIN, read(FIRST), Status(state="cancelled"), cancelled=True) == []


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        (FIRST + SECOND, Status(state="requeued"), "stranded"),
        (FIRST + SECOND, Status(state="failed"), "ended as failed"),
        (FIRST, Status(state="cancelled"), "ended as cancelled"),
        (FIRST, DONE, "came to 2 of 4"),
        (FIRST + SECOND.replace("begin 2", "begin 1").replace("step 3", "step 2\nstep 3", 1), DONE, "2 was saved"),
        (FIRST + SECOND.replace("step 3 1 n2 10.0\n", ""), DONE, "step 4 came after 2"),
        (FIRST + SECOND.replace("begin 2", "begin 4"), DONE, "4, and 2 was saved, 3 made"),
        (FIRST + SECOND + "step 4 0 n1 12.0\n", DONE, "beside another"),
        (FIRST + SECOND.replace("n2 9.0", "n2 3.5"), DONE, "beside another"),
        (FIRST + SECOND.replace(" 1 n2", " 0 n2"), DONE, "made twice"),
        (FIRST + SECOND, Status(state="completed", restarts=20), "started 21 times"),
    ],
)
def test_what_is_wrong(text: str, status: Status, words: str) -> None:
    text = text.replace("step 2\n", "step 2 1 n2 9.5\n")
    assert words in "; ".join(violations(CHAIN, read(text), status))


def test_a_seed_draws_the_same_twice() -> None:
    first, again, other = draw(3, 40), draw(3, 40), draw(4, 40)
    assert first == again and first != other
    assert draw(3, 40, ["job"]) == [chain for chain in first if chain.fault == "job"]
    assert {chain.fault for chain in first} == set(FAULTS)
