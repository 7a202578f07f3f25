"""Decides whether a run that depends on others can be submitted."""

from __future__ import annotations

import msgspec

from yurt.backends.kinds import kind_of
from yurt.model.run import After, Plan, Run
from yurt.store import Entry, Store

NO_JOB_YET = ("waiting", "submitting", "unknown")
"""States in which a run may have no job in the queue."""


class Turn(msgspec.Struct, frozen=True):
    """What to do with the run now."""

    never: str = ""
    """Why it can never be submitted."""
    run: str = ""
    """The predecessor that did not complete."""
    later: str = ""
    """Why it cannot be submitted yet."""
    jobs: list[str] = []
    """Jobs that must finish first in the same scheduler."""


NOW = Turn()


def turn(store: Store, run: Run) -> Turn:
    """Return whether a run can be submitted. If its predecessor is in the same queue, the scheduler keeps the order."""
    if not run.after:
        return NOW
    jobs: list[str] = []
    later = ""
    for after in run.after:
        entry = store.get(after.run)
        if entry is None:
            later = later or f"run {after.run}, which it depends on, is not in the run index"
        elif entry.status.final:
            if entry.status.state != "completed" and not after.ended:
                never = f"run {after.run}, which it depends on, did not complete ({entry.status.state})"
                return Turn(never=never, run=after.run)
        elif _one_queue(run, entry):
            jobs += [entry.status.job] if kind_of(run.context_type).scheduler else []
        else:
            later = later or f"run {after.run}, which it depends on, has not finished"
    return Turn(later=later) if later else Turn(jobs=jobs)


def _one_queue(run: Run, before: Entry) -> bool:
    """Return whether one scheduler, or this machine, has both runs, and the predecessor is a single job."""
    # A sweep has several jobs, and a race is not decided yet.
    same = before.run.context == run.context and not before.run.tasks and not before.run.race
    return same and bool(before.status.job) and before.status.state not in NO_JOB_YET and not before.run.restart_policy


def behind(store: Store, plan: Plan, jobs: list[str]) -> Plan:
    """Return the plan with a dependency on other jobs. job.sh itself checks whether they completed."""
    plan = _with_folders(store, plan)
    if not jobs:
        return plan
    own = plan.native_options.get("dependency")
    together = ",".join([*([own] if own else []), "afterany:" + ":".join(jobs)])
    return msgspec.structs.replace(plan, native_options={**plan.native_options, "dependency": together})


def _with_folders(store: Store, plan: Plan) -> Plan:
    """Return the plan with the folders of predecessors that had none yet when it was planned."""

    def folder(after: After) -> str:
        entry = None if after.folder else store.get(after.run)
        same = entry is not None and entry.run.context == plan.run.context and not entry.run.tasks
        return entry.run.folder if entry is not None and same else after.folder

    after = [msgspec.structs.replace(each, folder=folder(each)) for each in plan.run.after]
    return msgspec.structs.replace(plan, run=msgspec.structs.replace(plan.run, after=after)) if after else plan


def following(entries: list[Entry], context: str, *, ended: bool) -> list[After]:
    """Return the dependencies of a new run on `context`."""
    return [
        After(
            run=entry.run.id,
            folder=entry.run.folder if entry.run.context == context and not entry.run.tasks else "",
            ended=ended,
        )
        for entry in entries
    ]
