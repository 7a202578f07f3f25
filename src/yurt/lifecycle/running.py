"""Finds the running run whose node a verb needs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import msgspec

from yurt.clocks import clocks
from yurt.errors import RefusedError, UserError
from yurt.homes import gate
from yurt.lifecycle.refresh.poll_interval import longest_pause, next_pause
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.select import which
from yurt.lifecycle.steps import STEPS
from yurt.store import Entry, Store

Waiting = Callable[[Entry, Sequence[str]], None]
"""Called every second with the run that is not running yet, and with warnings."""


def until_running(
    store: Store,
    entry: Entry,
    on_wait: Waiting,
    *,
    before: str,
    on_refresh: Callable[[Entry], None] = lambda _entry: None,
) -> Entry:
    """Refresh, less and less often, until a run is running. RefusedError: it ended before, as `before` says.

    `on_refresh` is called after each refresh with the run that is not running yet.
    """
    run, context = entry.run, entry.run.context
    pause, longest, unsent = clocks().first_refresh, longest_pause([context]), entry.status.state == "waiting"
    on_wait(entry, [])
    while True:
        refreshed = refresh_contexts(store, [context], steps=STEPS, uploads=None, keep=False)
        if unsent and context in refreshed.failed:
            raise refreshed.failed[context]
        entry, unsent = store.get(run.id) or entry, False
        if entry.status.state == "running":
            return entry
        if entry.status.final:
            raise ended_before(entry, before)
        if entry.run.home_sync:
            entry = msgspec.structs.replace(entry, status=gate.explained(entry.run, entry.status))
        on_refresh(entry)
        until = time.monotonic() + pause
        on_wait(entry, refreshed.warnings)
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(1.0, left))
            on_wait(entry, [])
        pause = next_pause(pause, time.time() - run.created, longest)


def ended_before(entry: Entry, before: str) -> RefusedError:
    """Return the error for a run that ended too early."""
    reason = f": {entry.status.reason}" if entry.status.reason else ""
    return RefusedError(
        f"run {entry.run.id} ended before {before}: it is {entry.status.state}{reason}",
        code="run-not-running",
        hint=f"see the run with `yurt show {entry.run.id}`",
    )


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
