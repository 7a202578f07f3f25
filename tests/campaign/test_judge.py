"""The judge finds each kind of violation; the same seed gives the same episodes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.campaign.campaign import draw
from tests.campaign.judge import Case, count, violations
from tests.campaign.ledger import overlaps, read
from yurt.model.run import Status

DONE = Status(state="completed")
ONE = "start r 0 n1 1.0\nend r 0 n1 2.0\n"


def case(ledger: str, status: Status = DONE, label: str = "cut-1", **more: Any) -> Case:
    return Case(run="r", label=label, statuses=[status], starts=read(ledger), **more)


def test_no_violations() -> None:
    assert violations(case(ONE)) == []
    assert violations(case("", Status(state="cancelled", reason="cancelled before it started"), cancelled=True)) == []
    assert violations(case("start r 0 n1 1.0\n", Status(state="cancelled"), cancelled=True)) == []
    again = "start r 0 n1 1.0\nbeat r 0 n1 5.0\nstart r 1 n2 9.0\nend r 1 n2 11.0\n"
    assert violations(case(again, label="node-1", restarts=3)) == []
    assert violations(case("start r 0 n1 1.0\n", Status(state="lost"), label="crash-1", passed=1)) == []
    assert violations(case("", Status(state="lost"), label="crash-1", passed=1)) == []
    slurm = Status(state="cancelled", native="CANCELLED", reason="cancelled outside yurt")
    assert violations(case("", slurm, label="crash-1")) == []
    assert violations(case("", slurm, near_crash=True)) == []


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (case(ONE + "start r 0 n2 3.0\nend r 0 n2 4.0\n"), "too often"),
        (case("start r 0 n1 1.0\nbeat r 0 n1 9.5\nstart r 1 n2 9.0\nend r 1 n2 11.0\n", restarts=3), "same time"),
        (case(""), "never started"),
        (case("", Status(state="lost"), label="crash-1"), "never started"),
        (case("", Status(state="cancelled", native="CANCELLED")), "never started"),
        (case(ONE, Status(state="submitting")), "stranded"),
        (case(ONE, Status(state="unknown")), "stranded"),
        (case("start r 0 n1 1.0\n"), "did not finish"),
        (case(ONE, Status(state="lost")), "final state is lost"),
        (
            case(ONE, Status(state="cancelled", reason="cancelled before it was submitted"), cancelled=True),
            "was started",
        ),
        (case(ONE, Status(state="cancelled")), "final state is cancelled"),
        (case(ONE, Status(state="failed"), label="crash-1"), "final state is failed"),
    ],
)
def test_violations(wrong: Case, message: str) -> None:
    assert message in "; ".join(violations(wrong))


def test_a_cancelled_run_must_end() -> None:
    long = "start r 0 n1 1.0\nend r 0 n1 21.0\n"
    assert violations(case(long, cancelled=True, cancelled_at=15.0)) == []
    assert "ran for 19 s" in violations(case(long, cancelled=True, cancelled_at=2.0))[0]


def test_two_starts_on_one_host_count_as_two() -> None:
    starts = read("start r 0 n1 1.0\nstart r 0 n1 1.5\nend r 0 n1 2.0\nend r 0 n1 2.5\n")
    assert len(starts) == 2 and len(overlaps(starts)) <= 1
    assert count([case("start r 0 n1 1.0\nstart r 0 n1 1.5\nend r 0 n1 2.0\n")])["cut"].twice == 1


def test_the_table_counts_each_run_once() -> None:
    row = count([case(ONE, begun=2, passed=1), case(""), case("", Status(state="cancelled"), cancelled=True)])["cut"]
    assert (row.runs, row.once, row.never, row.cancelled, row.refused) == (3, 1, 1, 1, 1)


def test_the_same_seed_gives_the_same_episodes() -> None:
    first, again, other = draw(3, 100), draw(3, 100), draw(4, 100)
    assert first == again and first != other
    assert draw(3, 100, ["twins"]) == [episode for episode in first if episode.fault == "twins"]
    assert 85 <= sum({"silence": 2, "twins": 3, "crash": 2}.get(each.fault, 1) for each in first) <= 115
