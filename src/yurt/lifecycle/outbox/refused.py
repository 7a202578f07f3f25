"""Decides what follows the rejection of a saved run: it stays in the outbox, or it has failed.

A rejection concerns one submission. An earlier one, whose answer never came, may still reach the scheduler. So before
a run counts as failed, its gate is closed: from then on none of its submissions can start it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec

from yurt.errors import RefusedError
from yurt.lifecycle.outbox.submit import partly_submitted
from yurt.model import ids
from yurt.model import tasks as numbering
from yurt.model.run import Plan, RunRef, State, Status
from yurt.model.state import CANCELLED, TERMINATING
from yurt.store import Store

if TYPE_CHECKING:
    from yurt.backends.base import Backend, Runs

NO_ROOM = ("disk-full", "quota-full")

TEMPORARY = ("submit-limit", "scheduler-busy", "storage-unsafe", *NO_ROOM)
"""Codes of rejections after which the site may accept the same run later."""


def keep(store: Store, run: str, why: str) -> None:
    """Keep a rejected run in the outbox, with the reason in its status. The rejected attempt does not count."""

    def waiting(status: Status) -> Status:
        if status.final:
            return status
        attempts = max(status.attempts - 1, 0)
        unsure = status.unsure_since if attempts else None
        return msgspec.structs.replace(status, state="waiting", reason=why, attempts=attempts, unsure_since=unsure)

    if not ids.is_sweep(run):
        store.change([run], lambda _run, status: waiting(status))
    elif partly_submitted(store, run):  # submitted tasks go on; the rest stays pending
        store.change_tasks(run, whole=lambda status: msgspec.structs.replace(status, reason=why))
    else:
        store.change_tasks(run, whole=waiting)


def give_up(store: Store, plan: Plan, backend: Backend, why: str) -> bool:
    """End a rejected run, or the pending tasks of a sweep, as failed. Return whether it has failed.

    UnreachableError, or False: an earlier submission may still start it; it stays in the outbox.
    """
    run, runs = plan.run, backend.runs
    entry = store.get(run.id)
    if entry is None or entry.status.final:
        return False
    ref = RunRef(run.id, run.folder, run.created)
    first = entry.status.attempts <= 1 and entry.status.start == 1
    if first and not partly_submitted(store, run.id):
        runs.discard(ref)
        end(store, run.id, "failed", why)
        return True
    keep(store, run.id, why)
    try:
        if partly_submitted(store, run.id):
            return _give_up_tasks(store, plan, runs, why)
        return _after_closing(store, plan, runs.cancel(ref), why, start=entry.status.start)
    except RefusedError:  # such as a disk that is too full for the gate
        return False


def _after_closing(store: Store, plan: Plan, winner: str, why: str, *, start: int) -> bool:
    """End a run as failed whose gate is now closed and contains `winner`, unless an earlier submission started it."""
    run = plan.run
    begun = set(numbering.numbers(winner.partition(" ")[2])) if run.tasks else set()
    if begun:
        from yurt.lifecycle.outbox.cancellations import note_sweep_cancelled

        note_sweep_cancelled(store, run, begun)
    elif not run.tasks and start == 1 and winner != CANCELLED:
        set_fields(store, run.id, state="unknown", reason=TERMINATING)
    else:
        end(store, run.id, "failed", why if start == 1 else f"its restart was rejected: {why}")
        return True
    return False


def _give_up_tasks(store: Store, plan: Plan, runs: Runs, why: str) -> bool:
    pending = dict(store.pending_tasks(plan.run.id))
    ref = RunRef(plan.run.id, plan.run.folder, plan.run.created, open=numbering.ranges(pending))
    winners, now = runs.cancel_tasks(ref), time.time()

    def failed(number: int, status: Status) -> Status:
        if status.final:
            return status
        if pending[number] == 1 and winners.get(number) != CANCELLED:  # an earlier submission passed the gate
            return msgspec.structs.replace(status, state="unknown", reason=TERMINATING)
        reason = why if pending[number] == 1 else f"its restart was rejected: {why}"
        return msgspec.structs.replace(status, state="failed", reason=reason, ended=now, cancel_requested=False)

    changed, _whole = store.change_tasks(plan.run.id, pending, failed)
    return bool(changed)


def end(store: Store, run: str, state: State, why: str) -> None:
    """End a run, or the pending tasks of a sweep, in a final state."""
    now = time.time()
    if not partly_submitted(store, run):
        set_fields(store, run, state=state, reason=why, ended=now, cancel_requested=False)
        return

    def ended(_number: int, status: Status) -> Status:
        return status if status.final else msgspec.structs.replace(status, state=state, reason=why, ended=now)

    store.change_tasks(run, dict(store.pending_tasks(run)), ended)


def set_fields(store: Store, run: str, **fields: Any) -> None:
    """Change fields of a status, unless the run has finished in the meantime."""

    def changed(status: Status) -> Status:
        return status if status.final else msgspec.structs.replace(status, **fields)

    if ids.is_sweep(run):
        store.change_tasks(run, whole=changed)
    else:
        store.change([run], lambda _run, status: changed(status))
