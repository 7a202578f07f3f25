"""Which runs and tasks a retry submits again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.steps import STEPS
from yurt.model import layout
from yurt.model.progress import Watch, unwatched
from yurt.model.tally import BAD
from yurt.store import Entry, Store

FAILED = BAD
"""Final states that `--failed` retries. A cancelled run is not retried: the user stopped it."""


def failed_runs(store: Store, project: str, context: str = "") -> list[Entry]:
    """Return the failed runs of a project, also under other names of it, oldest first."""
    where = {"state": FAILED, **({"context": [context]} if context else {})}
    found = store.newest(where=where)
    own = (entry for entry in found if layout.same_folder(entry.run.project, project))
    return [entry for entry in own if entry.run.purpose == "run"][::-1]


def unfinished(store: Store, project: str, context: str = "") -> list[Entry]:
    """Return the unfinished runs of a project; some may have failed since the last refresh."""
    where = {"context": [context]} if context else {}
    found = store.newest(where=where, unfinished=True)
    return [entry for entry in found if layout.same_folder(entry.run.project, project)]


def refresh_unfinished(store: Store, entries: Sequence[Entry], *, watch: Watch = unwatched) -> list[str]:
    """Refresh the contexts of unfinished runs. Returns warnings."""
    names = sorted({entry.run.context for entry in entries if not entry.status.final})
    return refresh_contexts(store, names, watch=watch, steps=STEPS).warnings if names else []


def failed_tasks(store: Store, entry: Entry) -> list[int]:
    """Return the tasks of a sweep that failed and have not been retried."""
    failed = {number for number, state in store.task_states(entry.run.id).items() if state in FAILED}
    return sorted(failed - store.retried_tasks(entry.run.id)) if failed else []


def wanted(
    store: Store, entries: Sequence[Entry], *, failed: bool, picks: Mapping[str, Sequence[int]] | None = None
) -> Iterator[tuple[Entry, list[int] | None]]:
    """Yield the runs to retry, each with the tasks to retry; None for all tasks.

    `failed`: only runs and tasks that failed and have not been retried. `picks`: only these tasks of sweeps.
    """
    for entry in entries:
        if not entry.run.tasks:
            if not failed or (entry.status.state in FAILED and not store.retries(entry.run.id)):
                yield entry, None
            continue
        tasks = None if picks is None else list(picks.get(entry.run.id, ()))
        if failed:
            broken = failed_tasks(store, entry)
            tasks = broken if tasks is None else sorted({*tasks} & {*broken})
        if tasks is None or tasks:
            yield entry, tasks
