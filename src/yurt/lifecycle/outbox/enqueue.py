"""Keeps a plan and submits it, or leaves it in the outbox if the context is out of reach."""

from __future__ import annotations

from yurt import queue_prefetch
from yurt.errors import RefusedError
from yurt.lifecycle.outbox.dependencies import turn
from yurt.lifecycle.outbox.outbox import send_waiting
from yurt.lifecycle.plan.request import Planned
from yurt.model.context import Context
from yurt.model.progress import Watch, unwatched
from yurt.model.run import Status
from yurt.sites import connect
from yurt.store import Entry, Store

BY_HAND = "goes out with the next yurt command"


def enqueue(
    store: Store, context: Context, planned: Planned, *, later: str = BY_HAND, watch: Watch = unwatched
) -> tuple[Entry, list[str]]:
    """Keep a plan and submit it, after all that waited before it. Returns the run, and what to warn of.

    Once this has begun the run is not lost: what cannot go out now goes out later. RefusedError: the
    site will not have it, and nothing is kept of it. `later` says how what has to wait goes out.
    """
    plan = planned.plan
    if never := turn(store, plan.run).never:
        raise RefusedError(never, code="impossible", hint="yurt retry RUN, or --after-any RUN")
    backend = connect.backend(context)
    queue_prefetch.forget()
    store.add(plan.run, Status(state="submitting", attempts=1), plan)
    moved = send_waiting(store, context.name, backend, watch, fresh=plan.run.id)
    if plan.run.id in moved.refused:
        store.remove(plan.run.id)
        raise moved.refused[plan.run.id]
    entry = store.get(plan.run.id)
    assert entry is not None
    warnings = [*planned.warnings]
    if entry.status.state == "waiting" and (follows := turn(store, plan.run).later):
        warnings.append(f"{follows}; run {plan.run.id} waits, and {later} after that")
    elif entry.status.state == "waiting":
        why = moved.stopped.message if moved.stopped is not None else "other runs are before it"
        when = "when there is room" if isinstance(moved.stopped, RefusedError) else "once that can be reached"
        warnings.append(f"{why}; run {plan.run.id} waits, and {later} {when}")
    return entry, warnings
