"""Computes the status of a run from its last status and a new observation. Pure; contains every rule about states.

The job's exit.json outranks the scheduler, and the queue outranks accounting records. Absence alone proves nothing: a
run counts as lost only if it is missing in two observations some time apart.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec

from yurt.clocks import clocks
from yurt.model.run import RestartPolicy, State, Status
from yurt.model.site_words import MALFORMED, brief, plausible
from yurt.model.status_answer import expiring
from yurt.model.usage import Usage

CANCELLED = "cancelled"
"""The content of `winner` if the user cancelled the run before its job passed the gate."""

TERMINATING = "cancelled; the job is terminating"
"""The reason of a run that was cancelled and has not ended yet."""

LOST = "race"
"""The cause in exit.json of a candidate of a race that another one has won."""

RACED = "raced"
"""The cause in exit.json of a candidate that won its race and lost its node, so that the race went on without it."""

PREEMPTED = "preempted"
"""The cause in exit.json of a run whose job Slurm ended for another one."""

LOST_OUTPUTS = 74
"""The exit code of a run whose command succeeded, but whose outputs were not copied back from the disk of its node."""

NEVER = RestartPolicy()

BUILDING = "its environment is being built"

WAITS_FOR_SYNC = "waits for a home sync; run `yurt home sync`"
"""The reason of a run whose job is held until a home sync."""

OUT_OF_MEMORY = "it used more memory than its limit"
"""The reason of a run that was killed for its memory. The limit is the user's, or a default of the site."""

LISTED: tuple[State, ...] = ("queued", "held", "starting", "running", "requeued")
"""States of a run whose job is in the queue."""

ATTEMPTS = 6
"""Maximum number of submissions of a run whose jobs the site loses."""

PURGE = 86_400
"""Seconds within which a missing run folder proves that the run never started: nobody removes the folder of a run
that quickly after its start. Later, it may have run and been purged."""


LONGEST_TEXT = 4000
"""Characters of a text in exit.json that the index records."""


class Ending(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of exit.json, which the job writes at its end."""

    code: int
    signal: int = 0
    cause: str = ""
    """cancelled, timeout, out_of_memory, preempted, stopped (by the site), node_failed, requeues (limit reached), idle
    (nothing was saved), or empty: the command exited by itself."""
    started: float
    ended: float
    seconds: float | None = None
    """Total run time over all starts."""
    node: str = ""
    job: str = ""
    restarts: int = 0
    why: str = ""
    """Why the environment of the command could not be set up, if so."""
    said: str = ""
    """What a program of yurt says about its end, such as the version of the workspace that a dev node has saved."""
    unstaged: str = ""
    """Which outputs were not copied back from the disk of the node, and why, if so."""
    kb: int | None = None
    """Disk space of its outputs, its checkpoints and its working directory, in KB, if that was measured."""
    files: int | None = None
    """Number of files in them."""
    usage: Usage | None = None
    """What its processes used, if that was measured."""


def read_ending(text: bytes | str) -> Ending | None:
    """Parse exit.json; None if it is empty or incomplete. The index gets only the beginning of very long texts."""
    try:
        found = plausible(msgspec.json.decode(text, type=Ending)) if text else None
    except MALFORMED:
        return None
    if found is None or len(text) < LONGEST_TEXT:
        return found
    texts = {name: value for name in found.__struct_fields__ if isinstance(value := getattr(found, name), str)}
    return msgspec.structs.replace(found, **{name: _beginning(value) for name, value in texts.items()})


def _beginning(text: str) -> str:
    left_out = len(text) - LONGEST_TEXT
    return f"{text[:LONGEST_TEXT]} [{left_out} more characters]" if left_out > 0 else text


def read_metrics(line: bytes | str) -> dict[str, Any]:
    """Parse a line of metrics.jsonl; empty if it is incomplete."""
    from yurt.model import metric_rows  # most commands read none

    found = metric_rows.row(line.encode(errors="surrogateescape") if isinstance(line, str) else line)
    return {} if found is None else found


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What one query of a site found about one run."""

    live: State | None = None
    """The state in the queue; None if the queue does not list the job."""
    record: State | None = None
    """The final state in the scheduler's records."""
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
    """The content of the last gen.K: NONCE.JOB and more."""
    over: str = ""
    """The end of that start if another one follows: exit code, reason, start time, end time."""
    stopped: str = ""
    """Why the job was signalled to stop: cancelled (by the user), or the job's own note, such as timeout."""
    gone: bool = False
    """Whether its run folder does not exist; it is created before any start."""
    records_known: bool = True
    """Whether the scheduler's records could be read, or the site keeps none."""
    metrics: dict[str, Any] = {}
    """For a task: the last metrics it logged."""
    mark: str = ""
    """The job's row in the queue; nothing is new while it is unchanged."""
    uptime: float | None = None
    """Seconds since the scheduler's controller started; None if unknown."""
    array_listed: bool = False
    """For a task: whether the queue lists other tasks of its array."""
    preempted: bool = False
    """Whether its job was preempted."""
    unlaunched: bool = False
    """Whether its node could not launch the job, so the user's code did not start."""
    sure: bool = False
    """Whether absence proves the end, as for processes on this machine."""

    @property
    def last_job(self) -> str:
        """The job of the last start; empty if there was none."""
        return (self.start or self.winner).split(".")[1] if "." in self.start + self.winner else ""


def _brief(seen: Observation) -> Observation:
    """Return an observation in which no word for people is huge: each is shown wherever the run is."""
    reason, native, node = brief(seen.reason), brief(seen.native), brief(seen.node)
    if (reason, native, node) == (seen.reason, seen.native, seen.node):
        return seen
    return msgspec.structs.replace(seen, reason=reason, native=native, node=node)


def next_status(
    before: Status, seen: Observation, now: float, policy: RestartPolicy = NEVER, refreshed: float | None = None
) -> Status:
    """Return the status after an observation; equal to `before` if nothing is new.

    `policy`: when the run may be started again. `refreshed`: when this machine last queried the site.
    """
    if before.missing_since is None and before.state in LISTED and seen.live is None and refreshed:
        before = msgspec.structs.replace(before, listed_at=refreshed)
    after = _next_status(before, _brief(seen), now, policy)
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
        return never_started(after, now)
    if seen.live is not None:
        return _alive(before, after, seen, now)
    since = before.missing_since or now
    after = msgspec.structs.replace(after, missing_since=since)
    started = seen.generation or seen.winner
    settled = seen.sure or now - since >= clocks().settling or (seen.record is not None and not started)
    if settled and not seen.gone and (why := _goes_on(before, seen, policy, now - since)):
        return _next_start(after, seen, why)
    return _absent(before, after, seen, now, now - since)


def never_started(status: Status, now: float) -> Status:
    """Return the status of a run that was cancelled before its code started, whatever became of its job."""
    return msgspec.structs.replace(
        status,
        state="cancelled",
        reason="cancelled before it started",
        started=None,
        node="",
        ended=status.ended or now,
        missing_since=None,
        cancel_requested=False,
    )


def _job(before: Status, seen: Observation) -> str:
    return seen.last_job or seen.job or before.job


def _goes_on(before: Status, seen: Observation, policy: RestartPolicy, gone: float) -> str:
    """Return why a missing run is started again; empty if it is not."""
    from yurt.model import restart_policy

    cause, why = _cause(before, seen, gone)
    if cause == DECIDED:
        return why if policy else ""
    # The next start counts lost starts; yurt counts jobs that never started.
    past = restart_policy.Past(failures=0 if seen.generation else before.retries)
    return why if restart_policy.decide(restart_policy.KILLED, cause, policy, past).again else ""


DECIDED, UNKNOWN = "decided", "unknown"


def _cause(before: Status, seen: Observation, gone: float) -> tuple[str, str]:
    """Return the cause of the last start's end for the restart policy, and as text."""
    how = [*seen.over.split(), "", ""][1]
    by_hand = seen.record == "cancelled" and not seen.preempted and not seen.unlaunched
    unrecorded = seen.record is None and seen.records_known
    failed_early = seen.unlaunched or seen.record in ("node_failed", "failed")  # before the user's code started
    by_site = seen.reason or "the site stopped it"
    rows = (
        (before.cancel_requested or seen.stopped == CANCELLED or by_hand, CANCELLED, ""),
        (not seen.generation, "unlaunched" if failed_early else UNKNOWN, "its job failed before your code started"),
        # Its own job decided to start it again, but the next start did not happen.
        (how not in ("", "stopped", "done"), DECIDED, "its job did not restart it" if seen.records_known else ""),
        (how == "done", UNKNOWN, ""),
        # A failure of the user's code would have left an exit.json.
        (not how and seen.record == "failed", "lost", "its job was killed"),
        (not how and unrecorded and seen.stopped == "timeout", "timeout", "its job was killed"),
        (seen.record == "node_failed" or (seen.sure and not seen.stopped), "lost", by_site),
        (seen.record in ("timeout", "failed") or seen.preempted or seen.sure, "stopped", by_site),
        (not how and not seen.stopped and unrecorded and gone >= clocks().forgiving, "lost", "its job disappeared"),
    )
    return next(((cause, text) for matches, cause, text in rows if matches), (UNKNOWN, ""))


def _next_start(after: Status, seen: Observation, why: str) -> Status:
    return msgspec.structs.replace(
        after,
        state="waiting",
        reason=f"{why}; it will be restarted",
        start=seen.generation + 1,
        retries=after.retries + (not seen.generation),
        attempts=1,
        missing_since=None,
    )


def _alive(before: Status, after: Status, seen: Observation, now: float) -> Status:
    state, reason = seen.live, seen.reason
    assert state is not None
    building = before.building and state == "held"
    if building:  # the builder of the environment releases it
        state, reason = "queued", before.reason
    if state == "queued" and (before.state in ("running", "requeued") or seen.generation):
        state = "requeued"
    confirmed = before.confirmed or now - (before.submitted or now) >= clocks().young
    return msgspec.structs.replace(
        after, state=state, reason=reason, confirmed=confirmed, missing_since=None, building=building
    )


def _absent(before: Status, after: Status, seen: Observation, now: float, gone: float) -> Status:
    # Without a first start, the user's code never started, though a job may have passed the gate: another one can
    # still make that start. A missing run folder proves nothing.
    never = not seen.generation and not seen.gone
    ran = bool(seen.generation) or bool(seen.winner)
    by_user = _by_user(seen) and seen.record != "node_failed"  # else the node had failed before
    record: State | None = "cancelled" if by_user else seen.record
    if never and seen.winner and record == "completed":  # of a race: it gave its node back, and its follow-up is gone
        record = None
    if seen.gone and record is None and seen.records_known and _never_arrived(before, now):
        return _not_submitted(after, now)
    if record is not None and (seen.sure or gone >= clocks().settling or (record == "cancelled" and not ran)):
        early = "its job failed before your code started" if never else ""
        failed = early if record in ("failed", "completed") else ""
        by_slurm = preempted(seen.ended or now) if seen.preempted else seen.reason
        reason = "cancelled" if by_user else failed or by_slurm or early
        return _final(after, "failed" if never and record == "completed" else record, reason, seen.ended or now)
    if seen.sure and not never:
        left = "its run folder is gone" if seen.gone else "its process is gone and recorded no exit code"
        return _final(after, "lost", seen.reason or left, now)
    late = seen.record is None and seen.native == "RUNNING"  # the records will still say how its job ended
    if seen.stopped and gone >= (clocks().forgiving if late else clocks().settling):
        state: State = "timeout" if seen.stopped == "timeout" else "cancelled"
        return _final(after, state, _STOPPED.get(seen.stopped, _STOPPED["stopped"]), now)
    if seen.records_known and record is None:
        return _untraced(before, after, seen, now, gone, never=never)
    return _missing(after, seen)


def _untraced(before: Status, after: Status, seen: Observation, now: float, gone: float, *, never: bool) -> Status:
    """Return the status of a job that neither the queue nor the records list. `never`: its code never started."""
    if never and _cancelled_by_hand(before, seen, now):
        return (
            _final(after, "cancelled", "cancelled outside yurt, or its node could not start it", now)
            if gone >= clocks().settling
            else _missing(after, seen)
        )
    lost = not before.confirmed or seen.uptime is not None
    again = before.attempts < ATTEMPTS and (seen.sure or (lost and gone >= clocks().resubmit))
    if never and again:
        why = "the site lost its job before it started; it will be submitted again"
        return msgspec.structs.replace(
            after, state="waiting", reason=why, missing_since=None, job="", unsure_since=None
        )
    if gone >= clocks().forgiving:
        left = "its run folder is gone" if seen.gone else "it recorded no exit code"
        why = "the site lost its job before it started" if never else f"the site no longer lists its job, and {left}"
        return _final(after, "lost", why, now)
    return _missing(after, seen)


def _never_arrived(before: Status, now: float) -> bool:
    """Whether a run without a run folder was never submitted: no answer ever came, and its folder is not purged yet."""
    unsure = before.unsure_since
    return before.submitted is None and unsure is not None and now - unsure < PURGE


def _not_submitted(after: Status, now: float) -> Status:
    """Return the status of a run that never arrived at its site. It keeps its reason, such as a full disk."""
    unsure = after.unsure_since
    if unsure is not None and now - unsure >= clocks().forgiving:  # an upload does not outlive its client longer
        unsure = None
    return msgspec.structs.replace(after, state="waiting", missing_since=None, unsure_since=unsure)


def _missing(after: Status, seen: Observation) -> Status:
    reason = ENDING if _by_user(seen) else seen.reason or "the site does not list its job"
    return msgspec.structs.replace(after, state="unknown", reason=reason)


def _by_user(seen: Observation) -> bool:
    """Whether yurt cancelled a run that had started; its site says the same of a job that was cancelled otherwise."""
    return seen.stopped == CANCELLED and bool(seen.generation)


def _cancelled_by_hand(before: Status, seen: Observation, now: float) -> bool:
    """Whether a job that never started was cancelled outside yurt, not lost.

    A controller forgets jobs only when it restarts. A job that it listed or accepted after its last start, and
    that is gone without a record, was cancelled. So was a task that is missing in an array that is still listed.
    """
    if seen.array_listed and before.state != "requeued":
        return True
    if seen.uptime is None:
        return False
    return max(before.submitted or 0.0, before.listed_at or 0.0) > now - seen.uptime + clocks().skew


NEVER_SATISFIED = "a run that it depends on did not complete"
"""The reason of a run that was cancelled because of its dependency."""

ENDING = "cancelled; its site has not recorded the end yet"
"""The reason of a cancelled run that the queue no longer lists."""

_STOPPED = {
    "timeout": "it reached its time limit",
    "cancelled": "cancelled",
    "after": NEVER_SATISFIED,
    "stopped": "the site stopped it: preempted, or cancelled outside yurt",
    LOST: "another candidate of its race was first",
}


_CAUSES: dict[str, State] = {
    "timeout": "timeout",
    "requeues": "timeout",
    "idle": "timeout",
    "out_of_memory": "out_of_memory",
    "node_failed": "node_failed",
    RACED: "node_failed",
}

NODE_FAILED = "its node failed"

RACED_ON = "its node failed, and its race went on"
"""The reason of such a candidate."""

_STATES_IN_WORDS = {
    "timeout": "it reached its time limit",
    "out_of_memory": OUT_OF_MEMORY,
    "node_failed": NODE_FAILED,
}

_CAUSES_IN_WORDS = {
    "requeues": "it reached its time limit and the maximum number of restarts (--max-requeues)",
    "idle": "two consecutive starts saved nothing, so it was not restarted",
    "node_failed": "its node failed, and no retry was left",
    RACED: RACED_ON,
}


def _ended(after: Status, seen: Observation) -> Status:
    ending = seen.ending
    assert ending is not None
    if ending.cause == "stopped" and seen.preempted:  # its job could not ask Slurm
        ending = msgspec.structs.replace(ending, cause=PREEMPTED)
    state: State
    if ending.cause == LOST:
        state = "cancelled"
    elif ending.code == 0:
        state = "completed"
    elif ending.cause == "stopped" and seen.record == "node_failed":
        state = "node_failed"
    elif ending.cause:
        state = _CAUSES.get(ending.cause, "cancelled")
    else:
        # Only for a killed process does the scheduler know more than exit.json.
        known = seen.record in ("out_of_memory", "timeout", "node_failed") and ending.signal
        state = seen.record if known and seen.record else "failed"
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
        result_bytes=after.result_bytes if ending.kb is None else ending.kb * 1024,
        result_files=after.result_files if ending.files is None else ending.files,
        usage=ending.usage or after.usage,
        native=seen.native,
        missing_since=None,
        cancel_requested=False,
    )


def _ending_in_words(state: State, ending: Ending) -> str:
    if ending.unstaged and ending.code == LOST_OUTPUTS and not ending.cause:
        return ending.unstaged.strip()
    known = _end_in_words(state, ending)
    return "; ".join(each for each in (known, ending.said.strip(), ending.unstaged.strip()) if each)


def _end_in_words(state: State, ending: Ending) -> str:
    if state == "completed" or ending.why:
        return ending.why.strip()
    if ending.cause in _CAUSES_IN_WORDS:
        return _CAUSES_IN_WORDS[ending.cause]
    if state in _STATES_IN_WORDS:
        return _STATES_IN_WORDS[state]
    if state == "cancelled":
        return preempted(ending.ended) if ending.cause == PREEMPTED else _STOPPED.get(ending.cause, "cancelled")
    if ending.signal:
        return f"killed by signal {ending.signal} ({signal_name(ending.signal)})"
    return f"exit code {ending.code}"


def preempted(at: float) -> str:
    """Return in words that a job was preempted at a time, by the clock of this machine."""
    try:
        return f"preempted at {time.strftime('%H:%M', time.localtime(at))}"
    except (OverflowError, ValueError, OSError):  # no calendar has it
        return "preempted by another job"


def signal_name(number: int) -> str:
    import signal as signals  # builds its enumerations when it is imported

    try:
        return signals.Signals(number).name.removeprefix("SIG")
    except ValueError:
        return "unknown"


def _final(after: Status, state: State, reason: str, ended: float) -> Status:
    return msgspec.structs.replace(
        after, state=state, reason=reason, ended=after.ended or ended, missing_since=None, cancel_requested=False
    )


def mark_of(after: Status, seen: Observation) -> str:
    """Return the mark for the next query; it expires when the status may change with time alone."""
    if seen.live is None or not seen.mark:
        return ""
    return seen.mark if after.confirmed else expiring(seen.mark, confirmed_at(after))


def confirmed_at(status: Status) -> float:
    """Return when a run that the queue lists is confirmed at the latest."""
    return (status.submitted or 0) + clocks().young
