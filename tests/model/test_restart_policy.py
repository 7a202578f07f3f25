"""yurt applies the restart policy to every observation of a start without an exit status."""

from __future__ import annotations

import itertools

import pytest

from yurt.clocks import clocks
from yurt.model.restart_policy import KILLED, Past, decide
from yurt.model.run import RestartPolicy, Status
from yurt.model.state import Observation, next_status

BEGAN = 1000.0
ALLOWED = [
    RestartPolicy(max_requeues=requeues, retries=retries, retry_errors=errors)
    for requeues, retries, errors in itertools.product((0, 1, 3), (0, 1, 3), (False, True))
]

SEEN = {
    "killed": ("lost", Observation(generation=1, record="failed")),
    "killed at its limit": ("timeout", Observation(generation=1, stopped="timeout")),
    "its node failed": ("lost", Observation(generation=1, record="node_failed")),
    "its node failed after it stopped": (
        "lost",
        Observation(generation=1, record="node_failed", over="143 stopped 1 2"),
    ),
    "its process is gone": ("lost", Observation(generation=1, sure=True)),
    "its process is gone after a signal": ("stopped", Observation(generation=1, sure=True, stopped="stopped")),
    "preempted": (
        "stopped",
        Observation(generation=1, record="cancelled", native="PREEMPTED", preempted=True, stopped="stopped"),
    ),
    "preempted, and it stopped": (
        "stopped",
        Observation(generation=1, record="cancelled", native="PREEMPTED", preempted=True, over="143 stopped 1 2"),
    ),
    "its limit by the records": ("stopped", Observation(generation=1, record="timeout")),
    "vanished": ("lost", Observation(generation=2)),
    "cancelled": ("cancelled", Observation(generation=1, record="node_failed", stopped="cancelled")),
    "cancelled at the site": ("cancelled", Observation(generation=1, record="cancelled", native="CANCELLED by 7")),
    "out of memory": ("out_of_memory", Observation(generation=1, record="out_of_memory")),
    "not launched": (
        "unlaunched",
        Observation(record="cancelled", native="CANCELLED by 0", node="n1", unlaunched=True),
    ),
    "its node failed before it started": ("unlaunched", Observation(record="node_failed")),
}


@pytest.mark.parametrize("again", ALLOWED, ids=str)
@pytest.mark.parametrize("what", SEEN)
def test_the_policy_is_applied(what: str, again: RestartPolicy) -> None:
    cause, seen = SEEN[what]
    for failures in range(4):
        before = Status(state="running", retries=failures, missing_since=BEGAN, confirmed=True)
        after = next_status(before, seen, BEGAN + clocks().forgiving + 1, again)
        # The next start counts lost starts; yurt counts jobs that never started.
        past = Past() if seen.generation else Past(failures=failures)
        expected = bool(decide(KILLED, cause, again, past).again)
        assert ((after.state, after.start) == ("waiting", seen.generation + 1)) == expected, after
        assert after.final != expected, after


@pytest.mark.parametrize("reason", ["limit", "lost", "error", "preempted"])
def test_the_decision_of_a_job_is_kept(reason: str) -> None:
    seen = Observation(generation=1, over=f"1 {reason} 1 2")
    before = Status(state="running", missing_since=BEGAN, confirmed=True)
    for again in ALLOWED:
        after = next_status(before, seen, BEGAN + clocks().settling, again)
        assert (after.state == "waiting") == bool(again)
