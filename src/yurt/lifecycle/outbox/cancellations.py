"""Tells a site that runs are to end. May be repeated; what the site answers is written down."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from yurt.model import ids
from yurt.model import tasks as numbering
from yurt.model.run import Run, RunRef, Status
from yurt.model.state import CANCELLED
from yurt.store import Store

if TYPE_CHECKING:
    from yurt.backends.base import Runs


def tell_cancel(store: Store, runs: Sequence[str], site: Runs) -> None:
    """Have a site end runs, or keep them from ever starting; tasks of one sweep in one go.

    UnreachableError: it may or may not have heard of all. RefusedError: it did not do it.
    """
    tasks: dict[str, list[int]] = {}
    for run in runs:
        if task := ids.split_task(run):
            tasks.setdefault(task[0], []).append(task[1])
        else:
            _tell_run(store, run, site)
    for sweep, numbers in tasks.items():
        _tell_tasks(store, sweep, numbers, site)


def _tell_run(store: Store, run: str, site: Runs) -> None:
    entry = store.get(run)
    if entry is None or entry.status.final:
        return
    winner = site.cancel(RunRef(run, entry.run.folder, entry.run.created))
    if entry.run.tasks:
        sweep_told(store, entry.run, set(numbering.numbers(winner.partition(" ")[2])))
    else:
        store.change([run], lambda _run, status: _told(status, winner))


def _tell_tasks(store: Store, sweep: str, numbers: Sequence[int], site: Runs) -> None:
    whole, known = store.get(sweep), store.tasks(sweep)
    alive = [number for number in numbers if number not in known or not known[number].final]
    if whole is None or not alive:
        return
    ref = RunRef(sweep, whole.run.folder, whole.run.created, open=numbering.ranges(alive))
    winners = site.cancel_tasks(ref)
    store.change_tasks(sweep, alive, lambda number, status: _told(status, winners.get(number, "")))


def _told(status: Status, winner: str, now: float = 0) -> Status:
    if status.final:
        return status
    if winner == CANCELLED:
        return msgspec.structs.replace(
            status,
            state="cancelled",
            reason="cancelled before it started",
            ended=now or time.time(),
            cancel_requested=False,
        )
    state = "unknown" if status.state in ("waiting", "submitting") else status.state
    return msgspec.structs.replace(status, state=state, reason="cancelled; it is ending", cancel_requested=False)


def sweep_told(store: Store, sweep: Run, begun: set[int]) -> None:
    """A site was told that a sweep is to end: what has not `begun` never will. Of the others, a look tells."""
    now = time.time()

    def each(number: int, status: Status) -> Status:
        return _told(status, "" if number in begun else CANCELLED, now)

    def whole(status: Status) -> Status:
        out = numbering.ranges({*numbering.numbers(status.submitted_tasks), *begun})
        return msgspec.structs.replace(status, cancel_requested=False, reason="cancelled", submitted_tasks=out)

    store.change_tasks(sweep.id, range(sweep.tasks), each, whole)
