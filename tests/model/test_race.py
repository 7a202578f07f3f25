"""The pure part of races: the order of items, and the status of a race."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yurt.errors import UserError
from yurt.lifecycle.races import ways
from yurt.model.context import LOCAL, Context
from yurt.model.race import Mode, item_of, merged, order, queue_seconds, task_of
from yurt.model.run import Race, Run, State, Status
from yurt.model.state import Ending, Observation, next_status

RACE = Race(id="1nfaaa0-aaaa0", arbiter="alpha", folder="/x/yurt/races/1nfaaa0-aaaa0")


def run(name: str) -> Run:
    return Run(
        id=name,
        context=f"on-{name}",
        context_type="slurm",
        project="p-1234",
        source="/p",
        created=10.0,
        command=["true"],
        folder="",
        race=RACE.id,
    )


@given(st.integers(2, 5), st.integers(1, 40))
def test_every_candidate_has_every_item_once(candidates: int, items: int) -> None:
    for position in range(candidates):
        first, step = order(position, candidates, items)
        race = msgspec.structs.replace(RACE, first=first, step=step)
        found = [item_of(race, task, items) for task in range(items)]
        assert sorted(found) == list(range(items))
        assert [task_of(race, item, items) for item in found] == list(range(items))


def test_two_candidates_meet_at_the_end() -> None:
    orders = [order(position, 2, 10) for position in range(2)]
    assert orders == [(0, 1), (9, -1)]
    assert {order(position, 3, 9)[0] for position in range(3)} == {0, 8, 4}


def test_the_status_of_a_race_is_that_of_its_winner() -> None:
    members = [
        (run("a"), Status(state="cancelled", reason="cancelled before it started")),
        (run("b"), Status(state="running", started=12.0)),
    ]
    assert merged(members, "b") == members[1][1]


@pytest.mark.parametrize(
    ("states", "expected", "reason"),
    [
        (["queued", "waiting"], "queued", "on-0: queued; on-1: waiting"),
        (["queued", "running"], "starting", "its job on on-1 asks who was first"),
        (["cancelled", "queued"], "queued", ""),
        (["cancelled", "cancelled"], "cancelled", ""),
        (["failed", "cancelled"], "cancelled", ""),
        (["failed", "failed"], "failed", ""),
    ],
)
def test_the_status_of_a_race_without_a_winner(states: list[State], expected: State, reason: str) -> None:
    members = [(run(str(at)), Status(state=state)) for at, state in enumerate(states)]
    found = merged(members, "")
    assert (found.state, found.reason) == (expected, reason)


def test_a_race_without_candidates_failed() -> None:
    assert merged([], "").state == "failed"


def test_a_loser_is_cancelled_not_completed() -> None:
    """It exits with 0, so that Slurm does not count it as a failure."""
    before = Status(state="running", submitted=10.0, attempts=1)
    ending = Ending(code=0, cause="race", started=11.0, ended=11.0)
    found = next_status(before, Observation(ending=ending, winner="n.1", generation=1), 20.0)
    assert (found.state, found.reason) == ("cancelled", "another candidate of its race was first")


def test_queue_times() -> None:
    assert queue_seconds(Status(submitted=10.0, started=15.0), 9.0) == 5.0
    assert queue_seconds(Status(state="cancelled", submitted=10.0, ended=12.0), 9.0) == 2.0
    assert queue_seconds(Status(state="queued", submitted=10.0), 9.0) is None


def context(name: str, **keys: object) -> Context:
    return msgspec.convert({"name": name, "type": "slurm", "slurm_url": f"me@{name}", **keys}, Context)


NEVER, ASKS, ASKED = {"race_wait": "0"}, {"race_keys": True}, {"race_address": "me@there"}


@pytest.mark.parametrize(
    ("contexts", "mode", "expected"),
    [
        ([context("a"), context("b")], None, (0, ["here", "wait"])),
        ([context("a"), context("b", **NEVER)], None, (1, ["wait", "here"])),
        ([context("a", **ASKED), context("b", **ASKS)], None, (0, ["here", "ssh"])),
        ([context("a", **ASKS), context("b", **ASKED, **NEVER)], None, (1, ["ssh", "here"])),
        ([context("a", **ASKED), context("b", **ASKS)], "grant", (0, ["here", "wait"])),
        ([context("a", **NEVER), LOCAL], None, (0, ["here", "carry"])),
        ([LOCAL, context("a"), context("b")], None, (1, ["carry", "here", "wait"])),
        ([context("a", **NEVER), context("a", partition="long", **NEVER)], None, (0, ["here", "here"])),
    ],
)
def test_ways(contexts: list[Context], mode: Mode | None, expected: tuple[int, list[str]]) -> None:
    found = ways.choose(contexts, mode)
    assert (found.arbiter, found.ways) == expected


@pytest.mark.parametrize(
    ("contexts", "mode", "silent", "expected"),
    [
        ([context("a"), context("b")], None, {0}, (1, ["wait", "here"])),
        ([context("a", **ASKED), context("b", **ASKS)], None, {0}, (1, ["wait", "here"])),
        ([context("a", **ASKED), context("b", **ASKS)], None, {1}, (0, ["here", "wait"])),
        ([context("a", **ASKED), context("b", **ASKS)], "arbiter", {1}, (0, ["here", "out"])),
        ([context("a", **NEVER), context("b", **NEVER)], None, {1}, (0, ["here", "out"])),
        ([context("a"), LOCAL], None, {0}, (1, ["wait", "here"])),
    ],
)
def test_the_arbiter_is_a_site_that_responds(
    contexts: list[Context], mode: Mode | None, silent: set[int], expected: tuple[int, list[str]]
) -> None:
    found = ways.choose(contexts, mode, silent)
    assert (found.arbiter, found.ways) == expected


@pytest.mark.parametrize(
    ("contexts", "mode"),
    [
        ([context("a", **NEVER), context("b", **NEVER)], None),
        ([context("a"), context("b", **NEVER), context("c", **NEVER)], None),
        ([context("a"), context("b")], "arbiter"),
        ([context("a", **ASKED, **NEVER), context("b", **ASKS, **NEVER)], "grant"),
    ],
)
def test_impossible_ways_say_what_to_set(contexts: list[Context], mode: Mode | None) -> None:
    with pytest.raises(UserError) as caught:
        ways.choose(contexts, mode)
    assert "yurt context edit" in caught.value.hint


def test_a_job_waits_at_most_two_minutes() -> None:
    assert ways.wait_of(context("a")) == ways.wait_of(context("a", race_wait="3h")) == 120
    assert ways.wait_of(context("a", race_wait="20s")) == 20
    assert ways.wait_of(context("a", race_wait="0")) == 0
