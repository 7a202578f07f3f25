"""How a run stands, from what was last known and what was seen now. Pure; every rule about states is here.

The job's own ending outranks the scheduler; a queue that has the job outranks records; absence proves
nothing at once: a run is given up only when it stayed away over two looks some time apart.
"""

from __future__ import annotations

import signal as signals
from typing import Any

import msgspec

from yurt.clocks import clocks
from yurt.model.run import RestartPolicy, State, Status

CANCELLED = "cancelled"
"""What stands in `winner` when the user was faster than the job."""

NEVER = RestartPolicy()

ATTEMPTS = 6
"""A site that forgets a job this often is not asked again."""


class Ending(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a job wrote of its own end: exit.json."""

    code: int
    signal: int = 0
    cause: str = ""
    """cancelled, timeout, out_of_memory, stopped (by its site), node_failed, requeues (used up), idle (nothing was
    saved), or empty: it ended by itself."""
    started: float
    ended: float
    seconds: float | None = None
    """How long it ran, over all its starts."""
    node: str = ""
    job: str = ""
    restarts: int = 0


def read_ending(text: bytes | str) -> Ending | None:
    """A job's exit.json; None if there is none, or it is not whole."""
    try:
        return msgspec.json.decode(text, type=Ending) if text else None
    except msgspec.MsgspecError:
        return None


def read_metrics(line: bytes | str) -> dict[str, Any]:
    """A line of metrics.jsonl; empty if it is not whole."""
    try:
        return msgspec.json.decode(line, type=dict[str, Any]) if line else {}
    except msgspec.MsgspecError:
        return {}


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What one look at a site found of one run."""

    live: State | None = None
    """As the queue has it; None if it has not."""
    record: State | None = None
    """A final state by the scheduler's records."""
    native: str = ""
    reason: str = ""
    job: str = ""
    node: str = ""
    started: float | None = None
    ended: float | None = None
    ending: Ending | None = None
    winner: str = ""
    generation: int = 0
    """How many starts passed the gate."""
    start: str = ""
    """Who made the last of these starts: NONCE.JOB and more."""
    over: str = ""
    """How that start ended, if another was to follow: its exit code, why, when it began, when it ended."""
    stopped: str = ""
    """Why the job was told to stop: cancelled, as the user wished; or as it noted it itself, timeout or another."""
    gone: bool = False
    """Whether its folder, which is made before anything is started, is not there."""
    records_known: bool = True
    """Whether the scheduler's records could be read, or there are none to read."""
    metrics: dict[str, Any] = {}
    """Of a task: the last numbers it logged."""
    mark: str = ""
    """The queue's own words for it; as long as they are the same nothing is new."""
    preempted: bool = False
    """Whether its job had to make room for another."""
    unlaunched: bool = False
    """Whether its node could not launch the job: nothing of it was started."""
    sure: bool = False
    """Whether the place itself knows that absence is the end, as this machine does of its processes."""

    @property
    def last_job(self) -> str:
        """The job that made the last start; empty if none did."""
        return (self.start or self.winner).split(".")[1] if "." in self.start + self.winner else ""


def next_status(before: Status, seen: Observation, now: float, policy: RestartPolicy = NEVER) -> Status:
    """The status after a look; equal to the one before it if nothing is new. `policy`: when it may be started again."""
    after = _next_status(before, seen, now, policy)
    return after if after == before else msgspec.structs.replace(after, seen_at=now)


def _next_status(before: Status, seen: Observation, now: float, policy: RestartPolicy) -> Status:
    after = msgspec.structs.replace(
        before,
        native=seen.native or before.native,
        job=_job(before, seen),
        node=seen.node or before.node,
        started=seen.started or before.started,
        restarts=max(before.restarts, seen.generation - 1, 0),
        metrics=seen.metrics or before.metrics,
    )
    if seen.ending is not None:
        return _ended(after, seen)
    if before.final:
        return before
    if seen.winner == CANCELLED and not seen.generation:
        return _final(after, "cancelled", "cancelled before it started", now)
    if seen.live is not None:
        return _alive(before, after, seen, now)
    since = before.missing_since or now
    after = msgspec.structs.replace(after, missing_since=since)
    started = seen.generation or seen.winner
    settled = seen.sure or now - since >= clocks().settling or (seen.record is not None and not started)
    if settled and not seen.gone and (why := _goes_on(before, seen, policy, now - since)):
        return _next_start(after, seen, why)
    return _absent(before, after, seen, now, now - since)


def _job(before: Status, seen: Observation) -> str:
    return seen.last_job or seen.job or before.job


def _goes_on(before: Status, seen: Observation, policy: RestartPolicy, gone: float) -> str:
    """Why a run that is nowhere to be seen is started again; empty if it is not."""
    from yurt.model import restart_policy

    cause, why = _cause(before, seen, gone)
    if cause == DECIDED:
        return why if policy else ""
    # How often a start was lost is counted by the next one; how often none came to be is counted here.
    past = restart_policy.Past(failures=0 if seen.generation else before.retries)
    return why if restart_policy.decide(restart_policy.KILLED, cause, policy, past).again else ""


DECIDED, UNKNOWN = "decided", "unknown"


def _cause(before: Status, seen: Observation, gone: float) -> tuple[str, str]:
    """Why the last start of such a run is over, as the restart policy has it, and in words."""
    how = [*seen.over.split(), "", ""][1]
    by_hand = seen.record == "cancelled" and not seen.preempted and not seen.unlaunched
    silent = seen.record is None and seen.records_known
    failed_early = seen.unlaunched or seen.record in ("node_failed", "failed")  # nothing of the user's was started
    told = seen.reason or "its site stopped it"
    rows = (
        (before.cancel_requested or seen.stopped == CANCELLED or by_hand, CANCELLED, ""),
        (not seen.generation, "unlaunched" if failed_early else UNKNOWN, "it failed before it started"),
        # Its own job decided to start it again, and could not see to it.
        (how not in ("", "stopped", "done"), DECIDED, "nobody had started it again" if seen.records_known else ""),
        (how == "done", UNKNOWN, ""),
        # Of a failure of the user's there would be an ending.
        (not how and seen.record == "failed", "lost", "its job was killed"),
        (not how and silent and seen.stopped == "timeout", "timeout", "its job was killed"),
        (seen.record == "node_failed" or (seen.sure and not seen.stopped), "lost", told),
        (seen.record in ("timeout", "failed") or seen.preempted or seen.sure, "stopped", told),
        (not how and not seen.stopped and silent and gone >= clocks().forgiving, "lost", "it vanished"),
    )
    return next(((cause, words) for fits, cause, words in rows if fits), (UNKNOWN, ""))


def _next_start(after: Status, seen: Observation, why: str) -> Status:
    return msgspec.structs.replace(
        after,
        state="waiting",
        reason=f"{why}; it is started again",
        start=seen.generation + 1,
        retries=after.retries + (not seen.generation),
        attempts=1,
        missing_since=None,
    )


def _alive(before: Status, after: Status, seen: Observation, now: float) -> Status:
    state = seen.live
    assert state is not None
    if state == "queued" and (before.state in ("running", "requeued") or seen.generation):
        state = "requeued"
    confirmed = before.confirmed or now - (before.submitted or now) >= clocks().young
    return msgspec.structs.replace(after, state=state, reason=seen.reason, confirmed=confirmed, missing_since=None)


def _absent(before: Status, after: Status, seen: Observation, now: float, gone: float) -> Status:
    # An empty gate proves that the user's code never started; a folder that is gone proves nothing.
    ran = bool(seen.generation) or bool(seen.winner)
    never = not ran and not seen.gone
    wished = seen.stopped == CANCELLED and bool(seen.generation)
    record: State | None = "cancelled" if wished else seen.record
    if record is not None and (seen.sure or gone >= clocks().settling or (record == "cancelled" and not ran)):
        said = "cancelled" if wished else seen.reason or ("it ended before your code was started" if never else "")
        return _final(after, "failed" if never and record == "completed" else record, said, seen.ended or now)
    if seen.sure and not never:
        left = "its folder is gone" if seen.gone else "its process is gone and left no ending"
        return _final(after, "lost", seen.reason or left, now)
    if seen.stopped and gone >= clocks().settling:
        state: State = "timeout" if seen.stopped == "timeout" else "cancelled"
        return _final(after, state, _STOPPED.get(seen.stopped, _STOPPED["stopped"]), now)
    if seen.records_known and seen.record is None:
        again = before.attempts < ATTEMPTS and (seen.sure or (not before.confirmed and gone >= clocks().resubmit))
        if never and again:
            why = "the site forgot it before it started; it is submitted again"
            return msgspec.structs.replace(after, state="waiting", reason=why, missing_since=None, job="")
        if gone >= clocks().forgiving:
            left = "its folder is gone" if seen.gone else "it left no ending"
            why = "the site forgot it before it started" if never else f"the site forgot it, and {left}"
            return _final(after, "lost", why, now)
    return msgspec.structs.replace(after, state="unknown", reason=seen.reason or "the site does not know it now")


_STOPPED = {
    "timeout": "it reached its time limit",
    "cancelled": "cancelled",
    "after": "a run that it follows did not complete",
    "stopped": "its site told it to stop: preempted, or cancelled there by hand",
}


_CAUSES: dict[str, State] = {
    "timeout": "timeout",
    "requeues": "timeout",
    "idle": "timeout",
    "out_of_memory": "out_of_memory",
    "node_failed": "node_failed",
}

_STATES_IN_WORDS = {
    "timeout": "it reached its time limit",
    "out_of_memory": "it used more memory than it had asked for",
}

_CAUSES_IN_WORDS = {
    "requeues": "it was started again as often as it may, and was not done",
    "idle": "two starts in a row saved nothing that the next could use, so it was not started again",
    "node_failed": "its nodes failed more often than it may be started again",
}


def _ended(after: Status, seen: Observation) -> Status:
    ending = seen.ending
    assert ending is not None
    state: State
    if ending.code == 0:
        state = "completed"
    elif ending.cause:
        state = _CAUSES.get(ending.cause, "cancelled")
    else:
        # The scheduler knows why a process was killed; what it says of the rest is hearsay.
        told = seen.record in ("out_of_memory", "timeout", "node_failed") and ending.signal
        state = seen.record if told and seen.record else "failed"
    return msgspec.structs.replace(
        after,
        state=state,
        reason=_ending_in_words(state, ending),
        exit_code=ending.code,
        signal=ending.signal or None,
        started=ending.started,
        ended=ending.ended,
        node=ending.node or after.node,
        job=ending.job or after.job,
        restarts=max(after.restarts, ending.restarts),
        seconds=ending.seconds,
        native=seen.native,
        missing_since=None,
        cancel_requested=False,
    )


def _ending_in_words(state: State, ending: Ending) -> str:
    if state == "completed":
        return ""
    if ending.cause in _CAUSES_IN_WORDS:
        return _CAUSES_IN_WORDS[ending.cause]
    if state in _STATES_IN_WORDS:
        return _STATES_IN_WORDS[state]
    if state == "cancelled":
        return _STOPPED.get(ending.cause, "cancelled")
    if ending.signal:
        return f"killed by signal {ending.signal} ({signal_name(ending.signal)})"
    return f"exit code {ending.code}"


def signal_name(number: int) -> str:
    try:
        return signals.Signals(number).name.removeprefix("SIG")
    except ValueError:
        return "unknown"


def _final(after: Status, state: State, reason: str, ended: float) -> Status:
    return msgspec.structs.replace(
        after, state=state, reason=reason, ended=after.ended or ended, missing_since=None, cancel_requested=False
    )


def mark_of(after: Status, seen: Observation) -> str:
    """The mark to know a run by at the next look: only of one whose status no longer changes with time alone."""
    return seen.mark if seen.live is not None and after.confirmed else ""
