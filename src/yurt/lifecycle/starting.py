"""Follows a run from its submission until it is running."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import msgspec

from yurt.clocks import clocks
from yurt.errors import RefusedError
from yurt.lifecycle.refresh.poll_interval import longest_pause, next_pause
from yurt.lifecycle.refresh.refresh import refresh_contexts
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
            from yurt.homes import gate

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
