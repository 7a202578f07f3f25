"""Saves a plan and submits it, or leaves it in the outbox if the context is unreachable."""

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

BY_NEXT_COMMAND = "will be submitted by the next yurt command"


def enqueue(
    store: Store, context: Context, planned: Planned, *, later: str = BY_NEXT_COMMAND, watch: Watch = unwatched
) -> tuple[Entry, list[str]]:
    """Save a plan and submit it, after the runs that are already in the outbox. Return the run, and warnings.

    Once the plan is saved the run is not lost: if it cannot be submitted now, it is submitted later. RefusedError: the
    site refused the run, and nothing of it is kept. `later` completes the warning "run X is saved and ...".
    """
    plan = planned.plan
    if never := turn(store, plan.run).never:
        raise RefusedError(never, code="impossible", hint="retry it with `yurt retry RUN`, or use `--after-any RUN`")
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
        warnings.append(f"{follows}; run {plan.run.id} is saved and {later} after that")
    elif entry.status.state == "waiting":
        why = moved.stopped.message if moved.stopped is not None else "earlier runs are not submitted yet"
        full = moved.stopped is not None and moved.stopped.code == "submit-limit"
        when = " after a running job finishes" if full else ""
        warnings.append(f"{why}; run {plan.run.id} is saved and {later}{when}")
    return entry, warnings
