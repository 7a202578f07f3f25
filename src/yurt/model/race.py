"""A race: one run with several candidates, of which the first to start wins. Pure values.

Each candidate is a run of its own, with its own folder and job. Which one may start is decided by a claim in a folder
on the disk of one site, the arbiter: see job/claim.sh.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar

import msgspec

from yurt.model.run import FINAL, Race, Run, State, Status

Member = TypeVar("Member")
"""What is known of a candidate."""

Mode = Literal["arbiter", "grant"]
"""Who carries a claim to the arbiter: the job itself by ssh, or any yurt command."""

ONLY = 0
"""The item of a race that is not a sweep."""

RAN: tuple[State, ...] = ("completed", "timeout", "out_of_memory")
"""Final states that only a candidate has that ran your code."""

LIVE: tuple[State, ...] = ("waiting", "submitting", "unknown", "held", "queued", "requeued", "starting", "running")
"""Unfinished states, the most advanced one last."""


class RaceCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate of a race, as `show` prints it."""

    id: str
    """Its run."""
    context: str
    partition: str
    """Empty for the default of its site."""
    state: State
    reason: str
    job: str
    won: bool
    """Whether it was first; of a sweep, for some task."""
    tasks: int = 0
    """How many tasks of a sweep it has won."""
    queued: float | None = None
    """Seconds that it waited in the queue, until it started or was withdrawn."""


def order(position: int, candidates: int, items: int) -> tuple[int, int]:
    """Return the first item of a candidate of a sweep, and its step.

    Candidates begin at different items, so that they meet as late as possible: of two, one counts down from the end.
    """
    if position == 1:
        return items - 1, -1
    parts = max(1, candidates - 1)
    return (max(0, position - 1) * items // parts) % max(1, items), 1


def item_of(race: Race, task: int, items: int) -> int:
    """Return the item of a task of a candidate."""
    return (race.first + race.step * task) % items


def task_of(race: Race, item: int, items: int) -> int:
    """Return the task of a candidate that has an item."""
    return (race.step * (item - race.first)) % items


def merged(members: Sequence[tuple[Run, Status]], holder: str) -> Status:
    """Return the status of a race, or of an item of one, from those of its candidates."""
    for run, status in members:
        if run.id == holder:
            return status
    alive = [(run, status) for run, status in members if status.state not in FINAL]
    ran = [status for _run, status in members if status.state in RAN]
    if ran and not alive:  # only the holder of the claim runs your code
        return ran[0]
    if not alive:
        return _nobody(members)
    _run, best = max(alive, key=lambda each: LIVE.index(each[1].state))
    state, reason = best.state, _reasons(alive)
    if state == "running":  # its job has started, but your code has not: nobody holds the claim
        where = dict.fromkeys(run.context for run, status in alive if status.state == "running")
        state, reason = "starting", f"its job on {' and '.join(where)} asks who was first"
    return Status(state=state, reason=reason, submitted=best.submitted, attempts=best.attempts)


def _nobody(members: Sequence[tuple[Run, Status]]) -> Status:
    """Return the status of a race that nobody can win any more."""
    if not members:
        return Status(state="failed", reason="its submission was interrupted")
    ended = max((status.ended or 0.0 for _run, status in members), default=0.0) or None
    cancelled = [(run, status) for run, status in members if status.state == "cancelled"]
    if cancelled:
        return Status(state="cancelled", reason=_reasons(cancelled), ended=ended)
    return msgspec.structs.replace(members[0][1], reason=_reasons(members), ended=ended)


def _reasons(members: Sequence[tuple[Run, Status]]) -> str:
    """Return the reasons of candidates, by context; one reason if they all have the same."""
    texts = {status.reason or status.state for _run, status in members}
    if len(texts) == 1:
        return texts.pop() if members[0][1].reason else ""
    return "; ".join(dict.fromkeys(f"{run.context}: {status.reason or status.state}" for run, status in members))


def current(members: Sequence[tuple[Run, Member]]) -> list[tuple[Run, Member]]:
    """Return the candidates without those that a later candidate has replaced."""
    replaced = {run.retry_of for run, _each in members}
    return [(run, each) for run, each in members if run.id not in replaced]


def queue_seconds(status: Status, created: float) -> float | None:
    """Return how long a run waited in the queue; None while it waits."""
    until = status.started or (status.ended if status.final else None)
    return None if until is None else max(0.0, until - (status.submitted or created))
