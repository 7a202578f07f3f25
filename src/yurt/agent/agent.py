"""agent once: submit saved runs and refresh unfinished runs, on every context, and sync homes if that is due."""

from __future__ import annotations

import time

import msgspec

from yurt.contexts import folders
from yurt.errors import RefusedError, YurtError
from yurt.lifecycle.refresh.archive import catch_up_elsewhere
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.steps import STEPS
from yurt.model.progress import Watch, unwatched
from yurt.model.result import Result
from yurt.store import Store

CLAIMS = 20.0
"""Seconds between two rounds while jobs of a race may wait for an answer, with nodes that do nothing."""


class Round(msgspec.Struct, frozen=True):
    """The result of one round of the agent."""

    contexts: list[str]
    submitted: list[str]
    pending: list[str]
    failed: dict[str, str]
    """Contexts that could not be queried, with the error message."""
    synced: list[str] = []
    """Pairs of homes that were synced, such as local-alpha."""
    changed: bool = False
    """Whether a run may have changed its state."""
    due: float | None = None
    """When the next round must begin: to sync homes, or because jobs of a race wait for an answer; null if never."""


def once(*, watch: Watch = unwatched) -> Result[Round]:
    """Run one round over all contexts with unfinished runs. The exit code is 4 if a context could not be queried."""
    store = folders.store()
    contexts = store.contexts_of_unfinished()
    refreshed = refresh_contexts(store, contexts, watch=watch, steps=STEPS, uploads=None)
    catch_up_elsewhere(store, contexts)
    submitted = [run for each in refreshed.advanced.values() for run in each.submitted]
    pending = [run for context in contexts for run in store.outbox(context)]
    failed = {context: error.message for context, error in refreshed.failed.items()}
    synced, notes = _sync_homes(store, watch)
    due = min((at for at in (_next_sync(), _next_claim(store)) if at is not None), default=None)
    done = Round(contexts, submitted, pending, failed, synced, bool(refreshed.seen), due)
    warnings = [*refreshed.warnings, *notes]
    return Result(kind="agent-round", data=done, warnings=warnings, exit_code=4 if failed else 0)


def _sync_homes(store: Store, watch: Watch) -> tuple[list[str], list[str]]:
    """Sync homes if the interval of homes.yaml is over, or a run waits for it. Return the pairs, and warnings.

    All of them: what was changed on another place must reach the context of a run that waits.
    """
    from yurt.homes import config, gate, rounds, watcher
    from yurt.lifecycle.syncing import waiting

    homes = config.load()
    if homes is None or watcher.is_running():
        return [], []
    at = _next_sync()
    due = at is not None and time.time() >= at
    if not due and not any(context in homes.names for context in waiting(store)):
        return [], []
    try:
        done = rounds.run(homes, watch=watch)
    except RefusedError:  # another sync is running
        return [], []
    except YurtError as error:
        return [], [f"homes are not synced: {error.message}"]
    if any(each.released for each in done.outcomes):
        refresh_contexts(store, store.contexts_of_unfinished(), steps=STEPS)
    return [each.pair for each in done.outcomes if each.code == 0], [
        f"{each.pair} is not in sync: {gate.problem(each)}" for each in done.outcomes if each.code
    ]


def _next_claim(store: Store) -> float | None:
    """Return when to look again for jobs that wait for the answer who was first; None if there are none."""
    for race in store.open_races():
        whole, claims = store.get(race), store.holders(race)
        if whole is None or len(claims) >= max(1, whole.run.tasks):
            continue
        plans = [plan for name in store.candidates(race) if (plan := store.plan(name)) is not None]
        waits = [plan.race.wait for plan in plans if plan.race is not None and not plan.race.here]
        if waits:
            return time.time() + max(CLAIMS / 2, min(CLAIMS, min(waits) / 3))
    return None


def _next_sync() -> float | None:
    """Return when the interval of homes.yaml is over; None if it has none."""
    from yurt.homes import config, ledger

    homes = config.load()
    if homes is None or homes.interval_seconds is None:
        return None
    last = max((each.began for known in ledger.read().outcomes.values() for each in known), default=0.0)
    return last + homes.interval_seconds
