"""The status of a run after an observation, combined from exit.json, the queue and the records."""

from __future__ import annotations

import time
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yurt.clocks import clocks
from yurt.model.run import FINAL, RestartPolicy, State, Status
from yurt.model.state import (
    ATTEMPTS,
    CANCELLED,
    NEVER,
    PURGE,
    Ending,
    Observation,
    mark_of,
    next_status,
    signal_name,
)
from yurt.model.status_answer import valid_mark

CLOCKS = clocks()

NOW = 1_800_000_000.0
OPEN = sorted(set(get_args(State)) - FINAL - {"waiting", "submitting"})
LIVE = ["held", "queued", "starting", "running", "requeued", "unknown"]
WON = "n0nce.7"
CLOCK = time.strftime("%H:%M", time.localtime(NOW - 1))
"""The time of the end, as users read it."""


def ending(code: int = 0, **more: Any) -> Ending:
    return Ending(code=code, started=NOW - 60, ended=NOW - 1, **more)


def after(seconds: float, *observations: Observation, before: Status | None = None) -> Status:
    """Return the status of a run after observations this many seconds apart."""
    status = before or Status(state="queued", submitted=NOW, attempts=1, job="7")
    for count, seen in enumerate(observations):
        status = next_status(status, seen, NOW + count * seconds)
    return status


# One observation.


@pytest.mark.parametrize(
    ("ended", "record", "state", "reason"),
    [
        (ending(0), None, "completed", ""),
        (ending(0), "failed", "completed", ""),
        (ending(0), "cancelled", "completed", ""),
        (ending(0, cause="cancelled"), "cancelled", "completed", ""),
        (ending(3), None, "failed", "exit code 3"),
        (ending(3), "completed", "failed", "exit code 3"),
        (ending(3), "timeout", "failed", "exit code 3"),
        (ending(137, signal=9), None, "failed", "killed by signal 9 (KILL)"),
        (ending(137, signal=9), "failed", "failed", "killed by signal 9 (KILL)"),
        (ending(137, signal=9), "out_of_memory", "out_of_memory", "it used more memory than its limit"),
        (ending(137, signal=9), "node_failed", "node_failed", "its node failed"),
        (ending(143, cause="stopped", signal=15), "node_failed", "node_failed", "its node failed"),
        (ending(143, signal=15), "timeout", "timeout", "it reached its time limit"),
        (ending(143, signal=15, cause="timeout"), None, "timeout", "it reached its time limit"),
        (ending(1, cause="out_of_memory"), "failed", "out_of_memory", "it used more memory than its limit"),
        (ending(143, signal=15, cause="cancelled"), "failed", "cancelled", "cancelled"),
        (
            ending(143, signal=15, cause="stopped"),
            "cancelled",
            "cancelled",
            "the site stopped it: preempted, or cancelled outside yurt",
        ),
        (ending(143, signal=15, cause="preempted"), None, "cancelled", f"preempted at {CLOCK}"),
        (
            ending(143, signal=15, cause="preempted", said="version 2 saved"),
            "cancelled",
            "cancelled",
            f"preempted at {CLOCK}; version 2 saved",
        ),
        (ending(200, signal=72), None, "failed", "killed by signal 72 (unknown)"),
    ],
)
def test_exit_json_outranks_the_scheduler(ended: Ending, record: State | None, state: str, reason: str) -> None:
    for live in (None, "running"):
        seen = Observation(ending=ended, record=record, live=live, winner=WON, generation=1)
        status = after(0, seen)
        assert (status.state, status.reason, status.exit_code) == (state, reason, ended.code)
        assert (status.started, status.ended, status.signal) == (ended.started, ended.ended, ended.signal or None)
        assert next_status(status, seen, NOW + 1000) == status


def test_a_job_that_could_not_ask_why_it_was_stopped() -> None:
    """Of old jobs, and where Slurm did not answer its job: the queue says that it was preempted."""
    seen = Observation(ending=ending(143, signal=15, cause="stopped"), record="cancelled", preempted=True, generation=1)
    assert after(0, seen).reason == f"preempted at {CLOCK}"
    never = msgspec.structs.replace(ending(143, cause="preempted"), ended=2.4e11)  # in the year 9575
    assert after(0, Observation(ending=never, generation=1)).reason.startswith("preempted ")


@pytest.mark.parametrize(
    ("seen", "state"),
    [
        (Observation(live="queued"), "queued"),
        (Observation(live="queued", generation=1, winner=WON), "requeued"),
        (Observation(live="held"), "held"),
        (Observation(live="starting"), "starting"),
        (Observation(live="running"), "running"),
        (Observation(live="unknown"), "unknown"),
        (Observation(live="running", record="failed"), "running"),
        (Observation(winner=CANCELLED), "cancelled"),
        (Observation(winner=CANCELLED, live="queued"), "cancelled"),
        (Observation(record="cancelled"), "cancelled"),
        (Observation(), "unknown"),
        (Observation(gone=True), "unknown"),
        (Observation(winner=WON, generation=1), "unknown"),
        (Observation(winner=WON, generation=1, record="failed"), "unknown"),
        (Observation(winner=WON, generation=1, record="cancelled"), "unknown"),
        (Observation(winner=WON, generation=1, stopped="timeout"), "unknown"),
        (Observation(winner=WON, generation=1, sure=True), "lost"),
        (Observation(gone=True, sure=True), "lost"),
        (Observation(sure=True), "waiting"),
    ],
)
def test_one_observation(seen: Observation, state: str) -> None:
    assert after(0, seen).state == state


@pytest.mark.parametrize(
    ("seen", "seconds", "state", "reason"),
    [
        (Observation(winner=WON, generation=1, record="failed", reason="why"), CLOCKS.settling, "failed", "why"),
        (Observation(winner=WON, generation=1, record="completed"), CLOCKS.settling, "completed", ""),
        (
            Observation(record="node_failed"),
            CLOCKS.settling,
            "node_failed",
            "its job failed before your code started",
        ),
        (Observation(record="completed"), CLOCKS.settling, "failed", "its job failed before your code started"),
        (Observation(record="completed", gone=True), CLOCKS.settling, "completed", ""),
        (
            Observation(winner=WON, generation=1, stopped="timeout"),
            CLOCKS.settling,
            "timeout",
            "it reached its time limit",
        ),
        (Observation(winner=WON, generation=1, stopped="cancelled"), CLOCKS.settling, "cancelled", "cancelled"),
        (
            Observation(winner=WON, generation=1, record="cancelled", preempted=True, reason="x", ended=NOW - 1),
            CLOCKS.settling,
            "cancelled",
            f"preempted at {CLOCK}",
        ),
        (
            Observation(winner=WON, generation=1),
            CLOCKS.forgiving,
            "lost",
            "the site no longer lists its job, and it recorded no exit code",
        ),
        (Observation(winner=WON, generation=1), CLOCKS.forgiving - 1, "unknown", "the site does not list its job"),
        (
            Observation(gone=True),
            CLOCKS.forgiving,
            "lost",
            "the site no longer lists its job, and its run folder is gone",
        ),
        (Observation(), CLOCKS.resubmit - 1, "unknown", "the site does not list its job"),
        (
            Observation(),
            CLOCKS.resubmit,
            "waiting",
            "the site lost its job before it started; it will be submitted again",
        ),
        (Observation(records_known=False), 10 * CLOCKS.forgiving, "unknown", "the site does not list its job"),
        (  # its job passed the gate, and was lost before it started anything
            Observation(winner=WON),
            CLOCKS.resubmit,
            "waiting",
            "the site lost its job before it started; it will be submitted again",
        ),
        (  # of a race: that job gave its node back, and its follow-up was lost
            Observation(winner=WON, record="completed"),
            CLOCKS.resubmit,
            "waiting",
            "the site lost its job before it started; it will be submitted again",
        ),
        (
            Observation(winner=WON, record="node_failed"),
            CLOCKS.settling,
            "node_failed",
            "its job failed before your code started",
        ),
    ],
)
def test_a_missing_job(seen: Observation, seconds: float, state: str, reason: str) -> None:
    status = after(seconds, seen, seen)
    assert (status.state, status.reason) == (state, reason)


def test_a_confirmed_job_is_not_submitted_again() -> None:
    """A controller crash can lose only a new job; an older one was removed."""
    confirmed = after(CLOCKS.young, Observation(live="queued"), Observation(live="queued"))
    assert (
        confirmed.confirmed
        and not after(CLOCKS.young - 1, Observation(live="queued"), Observation(live="queued")).confirmed
    )
    assert after(CLOCKS.forgiving - 1, Observation(), Observation(), before=confirmed).state == "unknown"
    status = after(CLOCKS.forgiving, Observation(), Observation(), before=confirmed)
    assert (status.state, status.reason) == ("lost", "the site lost its job before it started")


@pytest.mark.parametrize("record", [None, "cancelled"])
@pytest.mark.parametrize("known", [True, False])
def test_a_cancelled_run_whose_end_is_not_recorded(record: State | None, known: bool) -> None:
    """Until its end had settled, it was "cancelled outside yurt", or not listed by its site."""
    seen = Observation(
        winner=WON,
        generation=1,
        stopped="cancelled",
        record=record,
        records_known=known,
        reason="cancelled outside yurt",
    )
    status = after(0, seen)
    assert (status.state, status.reason) == ("unknown", "cancelled; its site has not recorded the end yet")
    status = after(CLOCKS.settling, seen, seen)
    assert (status.state, status.reason) == ("cancelled", "cancelled")


@pytest.mark.parametrize(
    ("uptime", "listed", "array", "state"),
    [
        (None, False, False, "waiting"),  # nobody knows when the controller started
        (3600.0, False, False, "cancelled"),  # submitted after the controller's start: it cannot have lost it
        (CLOCKS.settling + CLOCKS.skew / 2, False, False, "waiting"),  # clocks may differ by that much
        (5.0, False, False, "waiting"),  # a restart since may have lost it
        (5.0, False, True, "cancelled"),  # its array is still listed
    ],
)
def test_cancelled_by_hand_or_lost(uptime: float | None, listed: bool, array: bool, state: str) -> None:
    seen = Observation(uptime=uptime, array_listed=array)
    assert after(CLOCKS.settling, seen, seen).state == state


def test_a_job_that_was_listed_after_a_restart_was_cancelled() -> None:
    confirmed = msgspec.structs.replace(
        after(CLOCKS.young, Observation(live="queued"), Observation(live="queued")), submitted=NOW - 9000
    )
    seen = Observation(uptime=500.0)
    since = msgspec.structs.replace(next_status(confirmed, seen, NOW, refreshed=NOW - 100), missing_since=NOW - 50)
    assert next_status(since, seen, NOW).state == "cancelled"
    unlisted = msgspec.structs.replace(next_status(confirmed, seen, NOW, refreshed=NOW - 600), missing_since=NOW - 50)
    assert next_status(unlisted, seen, NOW).state == "waiting", "the restart may have lost it: submitted again"


def test_submissions_of_lost_jobs_are_limited() -> None:
    worn = Status(state="queued", submitted=NOW, attempts=ATTEMPTS)
    assert after(CLOCKS.resubmit, Observation(), Observation(), before=worn).state == "unknown"
    assert after(CLOCKS.forgiving, Observation(), Observation(), before=worn).state == "lost"


@pytest.mark.parametrize("sure", [False, True])
def test_a_run_that_never_arrived_waits(sure: bool) -> None:
    """Its upload was interrupted, so its folder does not exist; the reason of the last rejection is kept."""
    full = Status(state="unknown", reason="the disk is full", attempts=1, unsure_since=NOW - 5)
    gone = Observation(gone=True, sure=sure)
    waits = next_status(full, gone, NOW)
    assert (waits.state, waits.reason, waits.unsure_since) == ("waiting", "the disk is full", NOW - 5)
    later = next_status(full, gone, NOW + CLOCKS.forgiving)
    assert (later.state, later.unsure_since) == ("waiting", None)
    for other in (
        msgspec.structs.replace(full, submitted=NOW - 5),
        msgspec.structs.replace(full, unsure_since=None),
        msgspec.structs.replace(full, unsure_since=NOW - PURGE),
    ):
        assert after(CLOCKS.forgiving, gone, gone, before=other).state == "lost", "it may have run and been removed"
    seen = Observation(gone=True, record="completed", sure=sure)
    assert after(CLOCKS.settling, seen, seen, before=full).state == "completed"
    silent = Observation(gone=True, records_known=False)
    assert after(CLOCKS.forgiving, silent, silent, before=full).state == "unknown"


def test_a_job_that_reappears() -> None:
    away = after(4, Observation(live="running"), Observation(), Observation())
    assert away.state == "unknown" and away.missing_since == NOW + 4
    back = next_status(away, Observation(live="running"), NOW + 20)
    assert (back.state, back.missing_since) == ("running", None)
    assert after(CLOCKS.forgiving - 1, Observation(winner=WON, generation=1), before=back).state == "unknown"


def test_a_requeue_is_counted() -> None:
    first = after(1, Observation(live="running", winner=WON, generation=1))
    waits = next_status(first, Observation(live="queued", reason="it waits"), NOW + 9)
    assert (waits.state, waits.reason) == ("requeued", "it waits")
    second = next_status(waits, Observation(live="running", winner=WON, generation=2), NOW + 20)
    assert (second.state, second.restarts) == ("running", 1)
    done = next_status(second, Observation(ending=ending(0, restarts=1), winner=WON, generation=2), NOW + 30)
    assert (done.state, done.restarts) == ("completed", 1)


def test_an_unchanged_observation_changes_nothing() -> None:
    seen = Observation(live="running", native="RUNNING", job="7", node="n1", started=NOW)
    first = after(0, seen)
    assert first.seen_at == NOW
    assert next_status(first, seen, NOW + 30) == first
    assert next_status(first, Observation(live="running", node="n2"), NOW + 30).seen_at == NOW + 30


def test_the_job_that_passed_the_gate_is_the_job_of_the_run() -> None:
    assert after(0, Observation(live="running", job="8", winner="abc.7")).job == "7"
    assert after(0, Observation(live="running", job="8")).job == "8"


def test_names_of_signals() -> None:
    assert (signal_name(9), signal_name(11), signal_name(999)) == ("KILL", "SEGV", "unknown")


# Any observations, in any order.

endings = st.builds(
    Ending,
    code=st.sampled_from([0, 1, 2, 78, 127, 137, 139, 143]),
    signal=st.sampled_from([0, 9, 11, 15]),
    cause=st.sampled_from(["", "cancelled", "timeout", "out_of_memory", "stopped", "a word of a later yurt"]),
    started=st.just(NOW - 60),
    ended=st.just(NOW - 1),
    restarts=st.integers(0, 3),
)
observations = st.builds(
    Observation,
    live=st.sampled_from([None, None, *LIVE]),
    record=st.sampled_from([None, *sorted(FINAL - {"lost"})]),
    ending=st.none() | endings,
    winner=st.sampled_from(["", WON, CANCELLED]),
    generation=st.integers(0, 3),
    stopped=st.sampled_from(["", "cancelled", "timeout", "stopped", "other"]),
    gone=st.booleans(),
    records_known=st.booleans(),
    sure=st.booleans(),
)
statuses = st.builds(
    Status,
    state=st.sampled_from(OPEN),
    submitted=st.sampled_from([None, NOW - 1000, NOW]),
    missing_since=st.sampled_from([None, NOW - 100, NOW - 7, NOW]),
    attempts=st.integers(0, ATTEMPTS),
    confirmed=st.booleans(),
    cancel_requested=st.booleans(),
    restarts=st.integers(0, 3),
)
finals = st.builds(Status, state=st.sampled_from(sorted(FINAL)), ended=st.just(NOW - 5), attempts=st.integers(0, 3))
pauses = st.sampled_from([0.0, 1.0, CLOCKS.resubmit, CLOCKS.settling, CLOCKS.forgiving, 10_000.0])


@given(finals, observations)
def test_only_exit_json_changes_a_final_status(before: Status, seen: Observation) -> None:
    status = next_status(before, seen, NOW)
    assert status.final
    if seen.ending is None:
        assert status == before
    else:
        assert status.exit_code == seen.ending.code


@given(statuses, observations)
def test_any_observation_of_any_run(before: Status, seen: Observation) -> None:
    status = next_status(before, seen, NOW)
    never = not seen.generation and not seen.gone
    given_back = never and seen.winner and seen.record == "completed"
    assert status.restarts >= before.restarts
    assert next_status(status, seen, NOW) == status or status.state == "waiting", (
        "the same observation twice gives the same status"
    )
    if status.final:
        assert status.ended is not None and not status.cancel_requested and status.missing_since is None
    if status.state == "waiting":
        assert never and seen.live is None and seen.ending is None and (seen.record is None or given_back)
        assert before.attempts < ATTEMPTS and seen.records_known
    if status.state == "completed":
        assert (seen.ending and seen.ending.code == 0) or (seen.record == "completed" and not never)
    if seen.ending is not None:
        assert status.final and status.state != "lost" and status.exit_code == seen.ending.code
        assert (status.state == "completed") == (seen.ending.code == 0)
    elif seen.live is not None:
        assert not status.final or seen.winner == CANCELLED
    elif not seen.sure and not seen.records_known:
        assert status.state != "lost", "lost without readable records"
    elif before.missing_since is None and not seen.sure:
        assert status.state != "lost", "lost after one observation"


@given(statuses, st.lists(st.tuples(observations, pauses), max_size=8), observations)
def test_any_sequence_reaches_a_stable_state(
    before: Status, history: list[tuple[Observation, float]], last: Observation
) -> None:
    """If the last observation repeats, the run finishes, is resubmitted, or stays in the queue."""
    now, status, ended = NOW, before, False
    for seen, pause in history:
        now += pause
        status = next_status(status, seen, now)
        assert not ended or status.final, "a final state was left"
        ended = status.final
        if status.state == "waiting":
            status = msgspec.structs.replace(status, state="queued", attempts=status.attempts + 1, submitted=now)
    for _again in range(3 * ATTEMPTS):
        now += CLOCKS.forgiving
        status = next_status(status, last, now)
        if status.state == "waiting":
            status = msgspec.structs.replace(status, state="queued", attempts=status.attempts + 1, submitted=now)
    assert status.final or last.live is not None or not last.records_known
    if not status.final and last.live is None:
        assert status.state == "unknown"
        known = msgspec.structs.replace(last, records_known=True)
        for _again in range(3 * ATTEMPTS):
            now += CLOCKS.forgiving
            status = next_status(status, known, now)
            if status.state == "waiting":
                status = msgspec.structs.replace(status, state="queued", attempts=status.attempts + 1)
        assert status.final, "the records are readable, and it still does not finish"


def test_the_mark_for_the_next_query() -> None:
    """An unchanged row in the queue may be skipped only if time alone does not change the status."""
    seen = Observation(live="running", mark="7|RUNNING")
    young, confirmed = after(0, seen), after(CLOCKS.young, seen, seen)
    assert mark_of(confirmed, seen) == valid_mark("7|RUNNING", 1e12) == "7|RUNNING"
    until = (young.submitted or 0) + CLOCKS.young
    assert valid_mark(mark_of(young, seen), until - 1) == "7|RUNNING"
    assert valid_mark(mark_of(young, seen), until) == ""
    assert mark_of(confirmed, Observation(mark="7|COMPLETED", record="completed")) == ""


# Runs that may be started again.

QUEUED = Status(state="queued", submitted=NOW, attempts=1, job="7")
REQUEUES, RETRIES = RestartPolicy(max_requeues=3), RestartPolicy(retries=1)
RAN = Observation(winner=WON, generation=2, start="abc.9.0.n1.1.1.b")


@pytest.mark.parametrize(
    ("policy", "changes", "state"),
    [
        (REQUEUES, {"over": "143 limit 1 2 saved"}, "waiting"),
        (REQUEUES, {"over": "143 limit 1 2 saved", "record": "failed"}, "waiting"),
        (REQUEUES, {"over": "85 preempted 1 2", "record": "failed"}, "waiting"),
        (REQUEUES, {"over": "143 limit 1 2", "record": "cancelled", "native": "CANCELLED"}, "cancelled"),
        (REQUEUES, {"over": "143 stopped 1 2", "stopped": "stopped"}, "cancelled"),
        (
            REQUEUES,
            {"over": "143 stopped 1 2", "record": "cancelled", "native": "PREEMPTED", "preempted": True},
            "waiting",
        ),
        (REQUEUES, {"over": "143 stopped 1 2", "record": "failed", "native": "FAILED"}, "waiting"),
        (REQUEUES, {"record": "timeout"}, "waiting"),
        (REQUEUES, {"record": "node_failed"}, "waiting"),
        (REQUEUES, {"record": "out_of_memory"}, "out_of_memory"),
        (REQUEUES, {"stopped": "timeout"}, "waiting"),
        (REQUEUES, {"stopped": "timeout", "records_known": False}, "timeout"),
        (REQUEUES, {"stopped": "cancelled"}, "cancelled"),
        (REQUEUES, {"stopped": "cancelled", "over": "143 limit 1 2 saved", "record": "completed"}, "cancelled"),
        (REQUEUES, {"records_known": False, "over": "143 limit 1 2 saved"}, "unknown"),
        (REQUEUES, {"gone": True}, "unknown"),
        (RETRIES, {"record": "node_failed"}, "waiting"),
        (RETRIES, {"record": "timeout"}, "timeout"),
        (RETRIES, {"record": "failed"}, "waiting"),
        (RETRIES, {"over": "3 done 1 2", "record": "failed"}, "failed"),
        (RETRIES, {"stopped": "timeout"}, "timeout"),
        (RETRIES, {"over": "3 error 1 2"}, "waiting"),
        (RETRIES, {"sure": True}, "waiting"),
        (RETRIES, {"sure": True, "stopped": "cancelled"}, "cancelled"),
        (NEVER, {"record": "node_failed"}, "node_failed"),
        (RETRIES, {"record": "node_failed", "stopped": "cancelled"}, "node_failed"),
        (NEVER, {"over": "143 limit 1 2 saved"}, "unknown"),
    ],
)
def test_whether_it_is_started_again(policy: RestartPolicy, changes: dict[str, Any], state: str) -> None:
    seen = msgspec.structs.replace(RAN, **changes)
    first = next_status(QUEUED, seen, NOW, policy)
    status = next_status(first, seen, NOW + CLOCKS.settling, policy)
    assert status.state == state
    assert first.state == "unknown" or changes.get("sure"), "not before it is certain"
    if state == "waiting":
        assert (status.start, status.missing_since, status.final) == (3, None, False)


def test_a_run_that_disappeared_is_started_again_after_a_while() -> None:
    status = QUEUED
    for ahead in (0.0, CLOCKS.settling, CLOCKS.forgiving):
        assert not status.final and status.state != "waiting"
        status = next_status(status, RAN, NOW + ahead, RETRIES)
    assert (status.state, status.start) == ("waiting", 3)


def test_failures_before_the_start_are_retried_up_to_the_limit() -> None:
    status, failed = QUEUED, Observation(record="node_failed", native="NODE_FAIL")
    for number in (1, 2):
        status = next_status(status, failed, NOW, RestartPolicy(retries=2))
        assert (status.state, status.start, status.retries) == ("waiting", 1, number)
        status = msgspec.structs.replace(status, state="queued")
    twice = RestartPolicy(retries=2)
    status = next_status(next_status(status, failed, NOW, twice), failed, NOW + CLOCKS.settling, twice)
    assert status.state == "node_failed"


@pytest.mark.parametrize(("cause", "state"), [("requeues", "timeout"), ("idle", "timeout"), ("node_failed",) * 2])
def test_why_it_was_not_started_again(cause: str, state: str) -> None:
    seen = Observation(ending=Ending(code=1, cause=cause, started=1, ended=9, seconds=5, restarts=4), generation=5)
    status = next_status(QUEUED, seen, NOW, REQUEUES)
    assert (status.state, status.seconds, status.restarts) == (state, 5, 4)
    assert status.reason not in ("", "exit code 1", "cancelled")


def test_records_that_are_late() -> None:
    """A stopped run whose job is RUNNING in the records: they will still say how it ended, such as NODE_FAIL."""
    running = Observation(live="running", winner=WON, generation=1, start=WON)
    late = Observation(winner=WON, generation=1, start=WON, stopped="stopped", native="RUNNING")
    known = msgspec.structs.replace(late, native="NODE_FAIL", record="node_failed")
    before = after(1, running)
    assert after(CLOCKS.settling + 1, late, late, before=before).state == "unknown"
    assert after(CLOCKS.settling + 1, late, late, known, before=before).state == "node_failed"
    assert after(CLOCKS.forgiving + 1, late, late, before=before).state == "cancelled"
    unrecorded = msgspec.structs.replace(late, native="")
    assert after(CLOCKS.settling + 1, unrecorded, unrecorded, before=before).state == "cancelled"


def test_a_huge_word_of_a_site_is_cut() -> None:
    """It was printed, and stored, in full by each command that showed the run."""
    huge = "x" * 5_000_000
    before = Status(state="queued", submitted=NOW - 10)
    after = next_status(before, Observation(live="running", native=huge, reason=huge, node=huge), NOW)
    assert after.state == "running" and len(after.native) < 5000
    assert len(after.node) < 5000 and len(after.reason) < 5000
