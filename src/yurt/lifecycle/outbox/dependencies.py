"""Whether it is the turn of a run that follows others."""

from __future__ import annotations

import msgspec

from yurt.backends.kinds import kind_of
from yurt.model.run import After, Plan, Run
from yurt.store import Entry, Store

NEVER_CAME = ("waiting", "submitting", "unknown")
"""States of a run whose job is not surely known."""


class Turn(msgspec.Struct, frozen=True):
    """What is to be done with it now."""

    never: str = ""
    """Why its turn never comes."""
    later: str = ""
    """What it still waits for here."""
    jobs: list[str] = []
    """Jobs that its own scheduler is to let go first."""


NOW = Turn()


def turn(store: Store, run: Run) -> Turn:
    """A run follows another when that has completed. Where both are in one queue, the queue sees to the order."""
    if not run.after:
        return NOW
    jobs: list[str] = []
    later = ""
    for after in run.after:
        entry = store.get(after.run)
        if entry is None:
            later = later or f"run {after.run}, which it follows, is not known here"
        elif entry.status.final:
            if entry.status.state != "completed" and not after.ended:
                return Turn(never=f"run {after.run}, which it follows, did not complete ({entry.status.state})")
        elif _one_queue(run, entry):
            jobs += [entry.status.job] if kind_of(run.context_type).scheduler else []
        else:
            later = later or f"it follows run {after.run}, which has not ended"
    return Turn(later=later) if later else Turn(jobs=jobs)


def _one_queue(run: Run, before: Entry) -> bool:
    """Whether one scheduler, or this machine, has both, and the other is one job to its end."""
    same = before.run.context == run.context and not before.run.tasks  # a sweep ends when its last task has
    return same and bool(before.status.job) and before.status.state not in NEVER_CAME and not before.run.restart_policy


def behind(plan: Plan, jobs: list[str]) -> Plan:
    """A plan whose job is let go after others have ended; job.sh sees for itself how they ended."""
    if not jobs:
        return plan
    own = plan.native_options.get("dependency")
    together = ",".join([*([own] if own else []), "afterany:" + ":".join(jobs)])
    return msgspec.structs.replace(plan, native_options={**plan.native_options, "dependency": together})


def following(entries: list[Entry], context: str, *, ended: bool) -> list[After]:
    """What a new run on a context is to know of the runs it follows."""
    return [
        After(
            run=entry.run.id,
            folder=entry.run.folder if entry.run.context == context and not entry.run.tasks else "",
            ended=ended,
        )
        for entry in entries
    ]
