"""When sites delete results that are nowhere else: neither fetched nor kept on a lasting tier. Queries no site."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from yurt.model.files import NOTHING
from yurt.store import Entry, Store
from yurt.store.copies import Copy
from yurt.store.site_copies import PurgeRule

DAY = 86_400
SOON = 14 * DAY
"""How long before the deletion yurt says so."""


def expiry(store: Store, entries: Iterable[Entry], rules: Sequence[PurgeRule], now: float) -> dict[str, float]:
    """Return when results are deleted, at the earliest, by run: of finished runs with results that are nowhere else.

    Only deletions within SOON, and those that may have happened.
    """
    found = {}
    for entry in entries:
        days = purge_days(entry, rules)
        if not days:
            continue
        at = (entry.status.ended or entry.run.created) + days * DAY
        if at - now <= SOON and not is_saved(store, entry):
            found[entry.run.id] = at
    return found


def purge_days(entry: Entry, rules: Sequence[PurgeRule]) -> int:
    """Return after how many days the results of a finished run are deleted; 0: never, as far as is known."""
    run = entry.run
    if not may_have_results(entry):
        return 0
    inside = [
        rule for rule in rules if rule.context == run.context and run.folder.startswith(f"{rule.folder.rstrip('/')}/")
    ]
    return max(inside, key=lambda rule: len(rule.folder)).days if inside else 0


def may_have_results(entry: Entry) -> bool:
    """Whether a finished run may have written results, according to its record."""
    run, status = entry.run, entry.status
    began = status.final and run.folder and run.purpose == "run" and (status.started or run.tasks)
    return bool(began) and status.result_files != 0


def is_gone(store: Store, run: str) -> bool:
    """Whether the folder of a run was removed from its site, or is being removed."""
    return bool(store.gone_at(run) or store.going_since(run))


def is_saved(store: Store, entry: Entry) -> bool:
    """Whether nothing is lost with a run folder, according to the index: there is a copy, or there are no results."""
    run = entry.run.id
    if not may_have_results(entry) or is_gone(store, run):
        return True
    if entry.run.tasks:
        return not store.unsaved_tasks(run)
    if store.site_copy(run) is not None:
        return True
    return any(_is_whole(copy) for copy in store.copies(run))


def _is_whole(copy: Copy) -> bool:
    """Whether fetched results are complete and still there, or there were none."""
    measured = copy.measures
    if (measured.outputs, measured.work) == (NOTHING, NOTHING) and measured.checkpoints in (NOTHING, ""):
        return True
    return bool(copy.files) and Path(os.fsdecode(copy.target)).is_dir()
