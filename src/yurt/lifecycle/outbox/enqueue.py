"""Saves a plan and submits it, or leaves it in the outbox if the context is unreachable."""

from __future__ import annotations

import time

from yurt import queue_prefetch
from yurt.errors import RefusedError
from yurt.lifecycle.outbox.dependencies import turn
from yurt.lifecycle.outbox.outbox import send_waiting
from yurt.lifecycle.plan.request import Planned
from yurt.model.context import Context
from yurt.model.progress import Watch, unwatched
from yurt.model.run import Status
from yurt.sites import connect
from yurt.store import Entry, Store, calls
from yurt.store.connection import INDEX_CODES


def enqueue(
    store: Store, context: Context, planned: Planned, *, by: str = "", watch: Watch = unwatched
) -> tuple[Entry, list[str]]:
    """Save a plan and submit it, after the runs that are already in the outbox. Return the run, and warnings.

    Once the plan is saved the run is not lost: if it cannot be submitted now, it is submitted later. RefusedError: the
    site rejected the run, and nothing of it is kept. `by`: who submits a saved run; a later yurt command by default.
    """
    plan = planned.plan
    before = turn(store, plan.run)
    if before.never:
        raise RefusedError(
            f"the run cannot start: {before.never}",
            code="impossible",
            hint=f"retry it with `yurt retry {before.run}`, or use `--after-any {before.run}`",
        )
    backend = connect.backend(context)
    queue_prefetch.forget()
    try:
        store.add(plan.run, Status(state="submitting", attempts=1, unsure_since=time.time()), plan)
    except RefusedError as error:
        error.message += "; nothing was submitted"
        raise
    if plan.calls:
        calls.release(plan.run.id)
    try:
        moved = send_waiting(store, context.name, backend, watch, fresh=plan.run.id)
    except RefusedError as error:
        if error.code not in INDEX_CODES:  # those of the site are results of `send_waiting`, not raised
            raise
        saved = f"run {plan.run.id} is saved; {by or 'the next yurt command'} finds out whether it was submitted"
        return Entry(plan.run, Status(state="waiting", reason=error.message)), [f"{error.message}; {saved}"]
    if plan.run.id in moved.refused:
        store.remove(plan.run.id)
        if plan.calls:
            calls.collect(store)
        raise moved.refused[plan.run.id]
    entry = store.get(plan.run.id)
    assert entry is not None
    warnings = [*planned.warnings, *(f"run {run}: {note}" for run, note in moved.notes.items())]
    if entry.status.state == "waiting" and (follows := turn(store, plan.run).later):
        warnings.append(f"run {plan.run.id} is saved: {follows}; {by or 'a later yurt command'} will submit it")
    elif entry.status.state == "waiting":
        why = moved.stopped.message if moved.stopped is not None else "earlier runs have not been submitted yet"
        full = moved.stopped is not None and moved.stopped.code == "submit-limit"
        later = f"will be submitted by {by or 'the next yurt command'}" + (" after a job finishes" if full else "")
        warnings.append(f"{why}; run {plan.run.id} is saved and {later}")
    return entry, warnings
