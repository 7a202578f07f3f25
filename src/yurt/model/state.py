"""How a run stands, from what was last known and what was seen now. Pure; every rule about states is here.

The job's own ending outranks the scheduler; a queue that has the job outranks records; absence proves
nothing at once: a run is given up only when it stayed away over two looks some time apart.
"""

from __future__ import annotations

import signal as signals

import msgspec

from yurt.model.run import State, Status

CANCELLED = "cancelled"
"""What stands in `winner` when the user was faster than the job."""

SETTLING = 10.0
"""Seconds in which a job's own ending may still be on its way over a shared disk."""

FORGIVING = 60.0
"""Seconds after which a job that left no trace at all is given up."""

YOUNG = 60.0
"""A job the queue never showed, or only this soon after its submission, may have been lost by a crash."""

RESUBMIT_AFTER = 5.0

ATTEMPTS = 6
"""A site that forgets a job this often is not asked again."""


class Ending(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a job wrote of its own end: exit.json."""

    code: int
    signal: int = 0
    cause: str = ""
    """cancelled, timeout, out_of_memory, stopped (by its site), or empty: it ended by itself."""
    started: float
    ended: float
    node: str = ""
    job: str = ""
    restarts: int = 0


class Sighting(msgspec.Struct, frozen=True, kw_only=True):
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
    stopped: str = ""
    """Why the job was told to stop, as it noted it itself: cancelled, timeout, or another word."""
    gone: bool = False
    """Whether its folder, which is made before anything is started, is not there."""
    records_known: bool = True
    """Whether the scheduler's records could be read, or there are none to read."""
    mark: str = ""
    """The queue's own words for it; as long as they are the same nothing is new."""
    sure: bool = False
    """Whether the place itself knows that absence is the end, as this machine does of its processes."""


def settle(before: Status, seen: Sighting, now: float) -> Status:
    """The status after a look; equal to the one before it if nothing is new."""
    after = _settle(before, seen, now)
    return after if after == before else msgspec.structs.replace(after, seen_at=now)


def _settle(before: Status, seen: Sighting, now: float) -> Status:
    after = msgspec.structs.replace(
        before,
        native=seen.native or before.native,
        job=_job(before, seen),
        node=seen.node or before.node,
        started=seen.started or before.started,
        restarts=max(before.restarts, seen.generation - 1, 0),
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
    return _absent(before, after, seen, now, now - since)


def _job(before: Status, seen: Sighting) -> str:
    _nonce, dot, job = seen.winner.partition(".")
    return job if dot else seen.job or before.job


def _alive(before: Status, after: Status, seen: Sighting, now: float) -> Status:
    state = seen.live
    assert state is not None
    if state == "queued" and (before.state in ("running", "requeued") or seen.generation):
        state = "requeued"
    rooted = before.rooted or now - (before.submitted or now) >= YOUNG
    return msgspec.structs.replace(after, state=state, reason=seen.reason, rooted=rooted, missing_since=None)


def _absent(before: Status, after: Status, seen: Sighting, now: float, gone: float) -> Status:
    # An empty gate proves that the user's code never started; a folder that is gone proves nothing.
    ran = bool(seen.generation) or bool(seen.winner)
    never = not ran and not seen.gone
    if seen.record is not None and (gone >= SETTLING or (seen.record == "cancelled" and not ran)):
        said = seen.reason or ("it ended before your code was started" if never else "")
        return _final(after, "failed" if never and seen.record == "completed" else seen.record, said, seen.ended or now)
    if seen.sure and not never:
        left = "its folder is gone" if seen.gone else "its process is gone and left no ending"
        return _final(after, "lost", seen.reason or left, now)
    if seen.stopped and gone >= SETTLING:
        state: State = "timeout" if seen.stopped == "timeout" else "cancelled"
        return _final(after, state, _STOPPED.get(seen.stopped, _STOPPED["stopped"]), now)
    if seen.records_known and seen.record is None:
        again = before.attempts < ATTEMPTS and (seen.sure or (not before.rooted and gone >= RESUBMIT_AFTER))
        if never and again:
            why = "the site forgot it before it started; it is submitted again"
            return msgspec.structs.replace(after, state="waiting", reason=why, missing_since=None, job="")
        if gone >= FORGIVING:
            left = "its folder is gone" if seen.gone else "it left no ending"
            why = "the site forgot it before it started" if never else f"the site forgot it, and {left}"
            return _final(after, "lost", why, now)
    return msgspec.structs.replace(after, state="unknown", reason=seen.reason or "the site does not know it now")


_STOPPED = {
    "timeout": "it reached its time limit",
    "cancelled": "cancelled",
    "stopped": "its site told it to stop: preempted, or cancelled there by hand",
}


def _ended(after: Status, seen: Sighting) -> Status:
    ending = seen.ending
    assert ending is not None
    state: State
    if ending.code == 0:
        state = "completed"
    elif ending.cause:
        state = {"timeout": "timeout", "out_of_memory": "out_of_memory"}.get(ending.cause, "cancelled")  # type: ignore[assignment]
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
        native=seen.native,
        missing_since=None,
        cancel=False,
    )


def _ending_in_words(state: State, ending: Ending) -> str:
    if state == "completed":
        return ""
    if state == "timeout":
        return "it reached its time limit"
    if state == "out_of_memory":
        return "it used more memory than it had asked for"
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
        after, state=state, reason=reason, ended=after.ended or ended, missing_since=None, cancel=False
    )


def mark_of(after: Status, seen: Sighting) -> str:
    """The mark to know a run by at the next look: only of one whose status no longer changes with time alone."""
    return seen.mark if seen.live is not None and after.rooted else ""
