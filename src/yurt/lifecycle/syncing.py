"""Syncs homes before a run starts, if its job is held until a home sync."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from yurt.errors import RefusedError, YurtError
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.steps import STEPS
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.state import WAITS_FOR_SYNC
from yurt.store import Entry, Store

if TYPE_CHECKING:
    from yurt.homes.config import Homes
    from yurt.homes.outcomes import Round

LOCKED = "home-locked"
"""The code of the error if another sync is running."""

PATIENCE = 600.0
"""Seconds to wait for another sync."""


def sync_first(
    store: Store,
    entries: Sequence[Entry],
    *,
    on_held: Callable[[Entry], None] = lambda _entry: None,
    watch: Watch = unwatched,
) -> tuple[list[Entry], list[str]]:
    """Sync the homes of the contexts of runs that wait for it, one after another. Return the runs, and warnings.

    `on_held` gets each run that waits, before the first sync. Never fails: a run whose sync fails stays held, and the
    next good sync releases it. A running `yurt home sync --watch`, or agent, does the sync instead.
    """
    runs: dict[str, list[str]] = {}
    for entry in entries:
        if entry.run.home_sync and not entry.status.final and entry.status.state not in ("waiting", "running"):
            runs.setdefault(entry.run.context, []).append(entry.run.id)
            on_held(entry)
    notes = [note for context, each in runs.items() for note in _sync(context, each, watch)]
    if runs:
        refresh_contexts(store, list(runs), steps=STEPS)
    return [store.get(entry.run.id) or entry for entry in entries], notes


def waiting(store: Store) -> dict[str, list[str]]:
    """Return the runs of this machine that wait for a home sync, by context."""
    found: dict[str, list[str]] = {}
    for entry in store.newest(unfinished=True, candidates=True):
        reason = entry.status.held if entry.run.tasks else entry.status.reason
        if entry.run.home_sync and reason.startswith(WAITS_FOR_SYNC):
            found.setdefault(entry.run.context, []).append(entry.run.id)
    return found


def _sync(context: str, runs: Sequence[str], watch: Watch) -> list[str]:
    from yurt.contexts import agent_state as agent
    from yurt.homes import config, gate, watcher

    held = f"run {runs[0]} is held" if len(runs) == 1 else f"{len(runs)} runs are held"
    try:
        homes = config.load()
        if homes is None or context not in homes.names:
            return [f"{held} until a home sync of {context}, which is not set up here; run `yurt home sync {context}`"]
        if watcher.is_running():
            watcher.ask()
            return [f"{held} until `yurt home sync --watch`, which is running, has synced {context}"]
        if agent.is_running():
            agent.ask()
            return [f"{held} until the agent, which is running, has synced {context}"]
        done = _round(homes, context, watch)
    except (YurtError, OSError) as error:
        why, hint = (error.message, error.hint) if isinstance(error, YurtError) else (str(error), "")
        return [_failed(held, context, why, hint)]
    bad = [each for each in done.outcomes if each.code]
    own = [each for each in bad if context in (each.hub, each.spoke)]
    if own:
        return [_failed(held, context, gate.problem(own[0]), own[0].hint)]
    notes = [f"{each.pair}: {warning}" for each in done.outcomes if not each.code for warning in each.warnings]
    return notes + [_incomplete(each.spoke, gate.problem(each), code=each.code) for each in bad]


def _incomplete(place: str, why: str, *, code: int) -> str:
    if code == 3:
        return f"{place} was not synced, so its changes are missing: {why}"
    return f"{place} was not synced completely, so some of its changes may be missing: {why}"


def _round(homes: Homes, context: str, watch: Watch) -> Round:
    """Sync all homes: what was changed on another place must reach this context, too.

    A sync under way may have begun before the run was submitted, so it does not count: wait for it, then sync.
    """
    from yurt.homes import rounds

    until = time.monotonic() + PATIENCE
    while True:
        watch(Event(f"syncing the homes, for {context}"))
        try:
            done = rounds.run(homes, watch=watch)
            if time.monotonic() > until or not any(each.problem_code == LOCKED for each in done.outcomes):
                return done
        except RefusedError as error:
            if time.monotonic() > until or error.code != LOCKED:
                raise
        watch(Event(f"waiting for another sync of {context} to end"))
        time.sleep(1)


def _failed(held: str, context: str, why: str, hint: str) -> str:
    todo = hint or f"run `yurt home sync {context}` when that is resolved"
    return f"the home sync of {context} failed: {why}; {held} until one succeeds; {todo}"
