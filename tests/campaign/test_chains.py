"""`violations` of chains finds each kind of violation; the same seed gives the same chains."""

from __future__ import annotations

import pytest

from tests.campaign.chains import FAULTS, Chain, draw, read, violations
from yurt.model.run import Status

CHAIN = Chain(number=1, cluster="alpha", fault="job", steps=4, every=2, on_signal=False, at_step=2, seconds=15.0)
DONE = Status(state="completed", restarts=1)

FIRST = "begin 0 0 n1 1.0\nstep 1 0 n1 2.0\nstep 2 0 n1 3.0\nsaved 2 0 n1 3.1\nstep 3 0 n1 4.0\n"
SECOND = "begin 2 1 n2 9.0\nstep 3 1 n2 10.0\nstep 4 1 n2 11.0\nsaved 4 1 n2 11.1\nend 4 1 n2 11.2\n"


def test_no_violations() -> None:
    assert violations(CHAIN, read(FIRST + SECOND), DONE) == []
    more = "begin 3 1 n2 9.0\nstep 4 1 n2 10.0\nsaved 4 1 n2 11.0\n"
    assert violations(CHAIN, read(FIRST + more), DONE) == [], (
        "it was killed after it saved and before it wrote that line"
    )
    assert violations(CHAIN, read(FIRST), Status(state="cancelled"), cancelled=True) == []


@pytest.mark.parametrize(
    ("text", "status", "message"),
    [
        (FIRST + SECOND, Status(state="requeued"), "stranded"),
        (FIRST + SECOND, Status(state="failed"), "final state is failed"),
        (FIRST, Status(state="cancelled"), "final state is cancelled"),
        (FIRST, DONE, "saved 2 of 4 steps"),
        (FIRST + SECOND.replace("begin 2", "begin 1").replace("step 3", "step 2\nstep 3", 1), DONE, "step 2 was saved"),
        (FIRST + SECOND.replace("step 3 1 n2 10.0\n", ""), DONE, "step 4 follows step 2"),
        (FIRST + SECOND.replace("begin 2", "begin 4"), DONE, "step 4; step 2 was saved, 3 reached"),
        (FIRST + SECOND + "step 4 0 n1 12.0\n", DONE, "at the same time as another"),
        (FIRST + SECOND.replace("n2 9.0", "n2 3.5"), DONE, "at the same time as another"),
        (FIRST + SECOND.replace(" 1 n2", " 0 n2"), DONE, "happened twice"),
        (FIRST + SECOND, Status(state="completed", restarts=20), "started 21 times"),
    ],
)
def test_violations(text: str, status: Status, message: str) -> None:
    text = text.replace("step 2\n", "step 2 1 n2 9.5\n")
    assert message in "; ".join(violations(CHAIN, read(text), status))


def test_the_same_seed_gives_the_same_chains() -> None:
    first, again, other = draw(3, 40), draw(3, 40), draw(4, 40)
    assert first == again and first != other
    assert draw(3, 40, ["job"]) == [chain for chain in first if chain.fault == "job"]
    assert {chain.fault for chain in first} == set(FAULTS)
