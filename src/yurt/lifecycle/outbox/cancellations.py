"""Cancels runs on their site and records the site's answer. Safe to repeat."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from yurt.errors import RefusedError, UnreachableError, YurtError
from yurt.model import ids
from yurt.model import tasks as numbering
from yurt.model.run import Run, RunRef, Status
from yurt.model.state import CANCELLED, TERMINATING, never_started
from yurt.store import Entry, Store

if TYPE_CHECKING:
    from yurt.backends.base import Runs

ENDED = "ended"
"""The answer of a site for a run that has ended."""


def tell_cancel(store: Store, runs: Sequence[str], site: Runs) -> list[str]:
    """Cancel runs on their site, whether they have started or not. Return those that had already ended there.

    All runs and sweeps take one request, and the tasks of each other sweep one. UnreachableError: some of the requests
    may have reached the site. RefusedError: the site refused some of them; the others are cancelled.
    """
    tasks: dict[str, list[int]] = {}
    whole: list[str] = []
    for run in runs:
        if task := ids.split_task(run):
            tasks.setdefault(task[0], []).append(task[1])
        else:
            whole.append(run)
    ended, failed = _cancel_whole(store, whole, site) if whole else ([], None)
    for sweep, numbers in tasks.items():
        try:
            ended += _cancel_tasks(store, sweep, numbers, site)
        except RefusedError as error:
            failed = failed or error
    if failed is not None:
        raise failed
    return ended


def _cancel_whole(store: Store, runs: Sequence[str], site: Runs) -> tuple[list[str], YurtError | None]:
    """Cancel runs and sweeps. Return those that had ended, and why one of them is not cancelled."""
    entries = {entry.run.id: entry for entry in store.several(runs) if not entry.status.final}
    refs = [RunRef(entry.run.id, entry.run.folder, entry.run.created) for entry in entries.values()]
    winners: dict[str, str] = {}
    failed: YurtError | None = None
    with suppress(RefusedError):  # raised again below, for the runs that it is about
        winners = site.cancel_runs(refs) if refs else {}
    for ref in refs:
        try:
            if not winners.get(ref.id):
                winners[ref.id] = site.cancel(ref)
        except RefusedError as error:
            failed = failed or error
        except UnreachableError as error:  # the requests of the others are recorded, and this one is repeated
            failed = error
            break
    winners = {run: winner for run, winner in winners.items() if winner}
    alone = [run for run in winners if not entries[run].run.tasks]
    store.change(alone, lambda run, status: _after_cancel(status, winners[run]))
    for run, winner in winners.items():
        if entries[run].run.tasks:
            note_sweep_cancelled(store, entries[run].run, set(numbering.numbers(winner.partition(" ")[2])))
    return [run for run in alone if winners[run] == ENDED], failed


def _cancel_tasks(store: Store, sweep: str, numbers: Sequence[int], site: Runs) -> list[str]:
    """Cancel tasks of a sweep; return those that had ended."""
    whole, known = store.get(sweep), store.tasks(sweep)
    alive = [number for number in numbers if number not in known or not known[number].final]
    if whole is None or not alive:
        return []
    ref = RunRef(sweep, whole.run.folder, whole.run.created, open=numbering.ranges(alive))
    winners = site.cancel_tasks(ref)
    store.change_tasks(sweep, alive, lambda number, status: _after_cancel(status, winners.get(number, "")))
    return [ids.task(sweep, number) for number in alive if winners.get(number) == ENDED]


def _after_cancel(status: Status, winner: str, now: float = 0) -> Status:
    if status.final:
        return status
    if winner == CANCELLED:
        return never_started(status, now or time.time())
    state = "unknown" if status.state in ("waiting", "submitting") else status.state
    if winner == ENDED:  # the next refresh updates the state
        return msgspec.structs.replace(status, state=state, cancel_requested=False)
    if winner and state in ("unknown", "queued") and status.started is None:
        state = "running"  # a job has passed the gate since the index was updated
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
