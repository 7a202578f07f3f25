"""Finds the running run whose node a verb needs."""

from __future__ import annotations

from yurt.errors import RefusedError, UserError
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.select import which
from yurt.lifecycle.steps import STEPS
from yurt.store import Entry, Store


def running(store: Store, name: str) -> Entry:
    """Return a run after a refresh. UserError: it is a sweep. RefusedError: it is not running."""
    (entry,) = which(store, [name])
    if entry.status.final and entry.run.name == name:  # a newer run of this name has ended
        entry = next(iter(store.newest(where={"name": [name]}, unfinished=True)), entry)
    run = entry.run
    if run.tasks:
        raise UserError(
            f"{run.id} is a sweep; this command needs a single task",
            code="usage",
            hint=f"name one, for example: `{run.id}.0`",
        )
    if not entry.status.final:
        refreshed = refresh_contexts(store, [run.context], steps=STEPS)
        if run.context in refreshed.failed:
            raise refreshed.failed[run.context]
        entry = store.get(run.id) or entry
    if entry.status.state != "running":
        raise RefusedError(
            f"run {run.id} is not running: it is {entry.status.state}",
            code="run-not-running",
            hint=f"see the run with `yurt show {run.id}`",
        )
    return entry
