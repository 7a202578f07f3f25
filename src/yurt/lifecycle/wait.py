"""wait: wait until runs have finished."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from yurt.clocks import clocks, ending_by
from yurt.contexts import folders
from yurt.lifecycle.refresh.full_disk import checked
from yurt.lifecycle.refresh.local_ends import LocalEnds
from yurt.lifecycle.refresh.poll_interval import longest_pause, next_pause
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.select import meant
from yurt.lifecycle.steps import STEPS
from yurt.model.result import Result
from yurt.store import Entry, Store

NEW, SHORT = 2, 0.15
"""Runs on this machine that are not older than NEW seconds get SHORT seconds to end before the first refresh."""


def wait(
    names: Sequence[str],
    *,
    filters: Sequence[str] = (),
    timeout: float | None = None,
    on_refresh: Callable[[list[Entry], list[str]], None] = lambda _entries, _warnings: None,
) -> Result[list[Entry]]:
    """Wait for runs and tasks of sweeps. The exit code is 0 if all completed, 4 after a timeout, else 1."""
    with folders.store() as store:
        entries, warnings = meant(store, names, filters)
        ended = until_ended(store, [entry.run.id for entry in entries], timeout=timeout, on_refresh=on_refresh)
    if not all(entry.status.final for entry in ended):
        code = 4
    else:
        code = 0 if all(entry.status.state == "completed" for entry in ended) else 1
    return Result(kind="runs-finished", data=ended, warnings=warnings, exit_code=code)


def until_ended(
    store: Store,
    runs: Sequence[str],
    *,
    timeout: float | None = None,
    on_refresh: Callable[[list[Entry], list[str]], None] = lambda _entries, _warnings: None,
) -> list[Entry]:
    """Refresh, less and less often, until all runs have finished or `timeout` seconds have passed. Returns the runs.

    The end of a run on this machine is noticed within half a second; see `next_pause` for other machines.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    pause = clocks().first_refresh
    entries = store.several(runs)
    longest = longest_pause(sorted({entry.run.context for entry in entries}))

    def refresh(contexts: Sequence[str], unfinished: Sequence[Entry]) -> list[Entry]:
        uploads = _upload_time(unfinished, deadline)
        names = [entry.run.id for entry in unfinished]
        with ending_by(deadline):
            refreshed = checked(store, names, lambda: refresh_contexts(store, contexts, steps=STEPS, uploads=uploads))
        entries = store.several(runs)
        on_refresh(entries, refreshed.warnings)
        return [entry for entry in entries if not entry.status.final]

    unfinished = [entry for entry in entries if not entry.status.final]
    while unfinished:
        ends = LocalEnds(unfinished)  # before the refresh, so that no end after it is missed
        if ends.all_alive and time.time() - min(entry.run.created for entry in unfinished) < NEW:
            ends.sleep(SHORT if deadline is None else min(SHORT, deadline - time.monotonic()))
        unfinished = refresh(sorted({entry.run.context for entry in unfinished}), unfinished)
        left = longest if deadline is None else deadline - time.monotonic()
        if left <= 0:
            break
        until = time.monotonic() + min(pause, max(0.05, left))
        while unfinished and ends.sleep(until - time.monotonic()):
            unfinished = refresh(ends.contexts, unfinished)  # the other sites are queried after the pause
        if unfinished:
            age = time.time() - min(entry.run.created for entry in unfinished)
            pause = next_pause(pause, age, longest)
    return store.several(runs)


def _upload_time(runs: Sequence[Entry], deadline: float | None) -> float | None:
    """Return for how long a refresh may upload large code: without a limit if there is nothing else to wait for."""
    saved = all(entry.status.state in ("waiting", "submitting") for entry in runs)
    left = None if deadline is None else max(1.0, deadline - time.monotonic())
    if saved:
        return left
    return clocks().silent if left is None else min(left, clocks().silent)
