"""Cancels runs on their site and records the site's answer. Safe to repeat."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from yurt.model import ids
from yurt.model import tasks as numbering
from yurt.model.run import Run, RunRef, Status
from yurt.model.state import CANCELLED, TERMINATING, never_started
from yurt.store import Entry, Store

if TYPE_CHECKING:
    from yurt.backends.base import Runs


def tell_cancel(store: Store, runs: Sequence[str], site: Runs) -> None:
    """Cancel runs on their site, whether they have started or not. Tasks of one sweep take one request.

    UnreachableError: some of the requests may have reached the site. RefusedError: the site refused.
    """
    tasks: dict[str, list[int]] = {}
    for run in runs:
        if task := ids.split_task(run):
            tasks.setdefault(task[0], []).append(task[1])
        else:
            _cancel_run(store, run, site)
    for sweep, numbers in tasks.items():
        _cancel_tasks(store, sweep, numbers, site)


def _cancel_run(store: Store, run: str, site: Runs) -> None:
    entry = store.get(run)
    if entry is None or entry.status.final:
        return
    winner = site.cancel(RunRef(run, entry.run.folder, entry.run.created))
    if entry.run.tasks:
        note_sweep_cancelled(store, entry.run, set(numbering.numbers(winner.partition(" ")[2])))
    else:
        store.change([run], lambda _run, status: _after_cancel(status, winner))


def _cancel_tasks(store: Store, sweep: str, numbers: Sequence[int], site: Runs) -> None:
    whole, known = store.get(sweep), store.tasks(sweep)
    alive = [number for number in numbers if number not in known or not known[number].final]
    if whole is None or not alive:
        return
    ref = RunRef(sweep, whole.run.folder, whole.run.created, open=numbering.ranges(alive))
    winners = site.cancel_tasks(ref)
    store.change_tasks(sweep, alive, lambda number, status: _after_cancel(status, winners.get(number, "")))


def _after_cancel(status: Status, winner: str, now: float = 0) -> Status:
    if status.final:
        return status
    if winner == CANCELLED:
        return never_started(status, now or time.time())
    state = "unknown" if status.state in ("waiting", "submitting") else status.state
    return msgspec.structs.replace(status, state=state, reason=TERMINATING, cancel_requested=False)


def note_sweep_cancelled(store: Store, sweep: Run, started: set[int]) -> None:
    """Record that a site cancelled a sweep: tasks not in `started` never start. The next refresh updates the others."""
    now = time.time()

    def each(number: int, status: Status) -> Status:
        return _after_cancel(status, "" if number in started else CANCELLED, now)

    def whole(status: Status) -> Status:
        out = numbering.ranges({*numbering.numbers(status.submitted_tasks), *started})
        return msgspec.structs.replace(status, cancel_requested=False, reason="cancelled", submitted_tasks=out)

    store.change_tasks(sweep.id, range(sweep.tasks), each, whole)


def request(store: Store, entries: Sequence[Entry]) -> None:
    """Save cancel requests in the index: the next refresh of their sites sends them."""
    together: dict[str, list[Entry]] = {}
    for entry in entries:
        together.setdefault(entry.run.sweep or entry.run.id, []).append(entry)
    for group in together.values():
        _request(store, group[0].run.sweep, group)


def _request(store: Store, sweep: str, group: Sequence[Entry]) -> None:
    if sweep:
        whole = store.get(sweep)
        tried = whole is not None and whole.status.attempts > 0
        numbers = [entry.run.task for entry in group if entry.run.task is not None]
        store.change_tasks(sweep, numbers, lambda _number, status: _requested(status, tried=tried))
        return
    (entry,) = group
    if entry.run.tasks:
        store.change_tasks(entry.run.id, whole=_requested)
    else:
        store.change([entry.run.id], lambda _run, status: _requested(status))


def _requested(status: Status, *, tried: bool = False) -> Status:
    """Return the status with the request. `tried`: the task may be submitted, though its own status does not say so."""
    if status.final:
        return status
    if status.state == "waiting" and status.attempts == 0 and not tried:
        return msgspec.structs.replace(
            status, state="cancelled", reason="cancelled before it was submitted", ended=time.time()
        )
    return msgspec.structs.replace(status, cancel_requested=True)
