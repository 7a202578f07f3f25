"""cancel: end runs, wherever they are on their way."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

from yurt.errors import YurtError
from yurt.model.run import Status
from yurt.store import Entry, Store
from yurt.verbs import notify, places
from yurt.verbs.advance import tell_cancel


class Cancelled(msgspec.Struct, frozen=True):
    """A run that was asked to end: how it stands, and whether its site has been told."""

    id: str
    context: str
    state: str
    told: bool
    note: str = ""


def cancel(store: Store, entries: Sequence[Entry]) -> tuple[list[Cancelled], YurtError | None]:
    """End runs. One that never went out ends at once; a site that cannot be told is told by the next advance().

    Returns what came of each, and the error of a site that could not be told.
    """
    for entry in entries:
        _want(store, entry)
    done, unreachable = [], None
    for entry in entries:
        run = entry.run
        note, told = "", True
        before = store.get(run.id)
        if before is not None and not before.status.final:
            try:
                tell_cancel(store, run.id, places.named_backend(run.context))
            except YurtError as error:
                unreachable, told, note = error, False, error.message
        elif entry.status.final:
            note = f"it had ended already ({entry.status.state})"
        after = store.get(run.id)
        state = after.status.state if after is not None else "unknown"
        done.append(Cancelled(run.id, run.context, state, told, note or (after.status.reason if after else "")))
    notify.fire(store)
    return done, unreachable


def _want(store: Store, entry: Entry) -> None:
    """Write down that it is to end."""
    run = entry.run
    if run.task is not None:
        store.change_tasks(run.sweep, [run.task], lambda _number, status: _wanted(run.id, status))
    elif run.sets:
        store.change_tasks(run.id, whole=lambda status: _wanted(run.id, status))
    else:
        store.change([run.id], _wanted)


def _wanted(_run: str, status: Status) -> Status:
    if status.final:
        return status
    if status.state == "waiting" and status.attempts == 0:
        return msgspec.structs.replace(
            status, state="cancelled", reason="cancelled before it went out", ended=time.time()
        )
    return msgspec.structs.replace(status, cancel=True)
