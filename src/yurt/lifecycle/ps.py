"""ps: list runs, newest first."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from yurt.config import paths
from yurt.contexts import early_answer
from yurt.lifecycle.fresh import is_fresh
from yurt.model.result import Result
from yurt.model.run import FINAL, State
from yurt.model.usage import Usage
from yurt.store import Entry, Store

if TYPE_CHECKING:
    from yurt.model.progress import Watch

Filters = tuple[dict[str, list[str]], list[tuple[str, str]]]
"""Allowed values for each column of the index, and the other keys with their values."""


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """One run in the list."""

    id: str
    name: str
    context: str
    project: str
    state: State
    reason: str
    native: str
    job: str
    node: str
    command: list[str]
    params: dict[str, Any]
    tags: list[str]
    created: float
    started: float | None
    ended: float | None
    exit_code: int | None
    restarts: int
    seconds: float | None
    """Total running time of all starts, in seconds; None until the run has finished."""
    seen_at: float | None
    """When the site was last queried; None if never."""
    tasks: int
    """Number of tasks of a sweep; 0 for a single run."""
    task_states: dict[str, int]
    """Number of tasks in each state."""
    candidates: list[str] = []
    """For a race that is not decided: the contexts that take part; for a finished raced sweep: those that ran it."""
    deleted_at: float | None = None
    """When its site deletes its results, at the earliest, if that is within 14 days, or was, and no copy of them is
    recorded."""
    usage: Usage | None = None
    """What it used of its resources; null if that is unknown, and for a sweep."""


def ps(
    *,
    limit: int | None = 50,
    filters: Sequence[str] = (),
    context: str = "",
    cached: bool = False,
    watch: Watch | None = None,
) -> Result[list[RunRow]]:
    """List runs, newest first, after a refresh of the contexts with unfinished runs, unless `cached`.

    A context that cannot be queried is a warning.
    """
    wanted = _read(filters)  # first: an invalid filter fails before any context is queried
    index = Store(f"{paths.data_folder()}/yurt.db")
    warnings = [] if cached else _refresh(index, context, watch)
    return Result(kind="runs", data=_rows(index, wanted, limit=limit, context=context), warnings=warnings)


def watch(*, limit: int | None = 50, filters: Sequence[str] = (), context: str = "") -> Iterator[Result[list[RunRow]]]:
    """Yield the list again and again, without end; less often while nothing changes."""
    from yurt.lifecycle.refresh import poll_interval

    before: list[RunRow] | None = None
    pause, _longest = poll_interval.WATCHING
    while True:
        found = ps(limit=limit, filters=filters, context=context)
        yield found
        changed = before is None or any(changes(before, found.data))
        before, pause = found.data, poll_interval.next_pause_of_watch(pause, changed=changed)
        time.sleep(pause)


def _refresh(index: Store, context: str, watch: Watch | None) -> list[str]:
    """Refresh contexts with unfinished runs, and download the logs of finished ones. Returns warnings."""
    names = [name for name in index.contexts_of_unfinished() if context in ("", name)]
    names = [name for name in names if not is_fresh(index, name)]
    warnings: list[str] = []
    if not names and not index.open_races():
        from yurt.store import calls

        early_answer.states_changed()
        calls.collect(index)
    elif (seen := _unchanged(index, names)) is not None:
        warnings = seen
    else:
        from yurt.lifecycle.refresh.refresh import refresh_contexts
        from yurt.lifecycle.steps import STEPS
        from yurt.model.progress import unwatched

        warnings = refresh_contexts(index, names, steps=STEPS, watch=watch or unwatched).warnings
    if index.contexts_to_mirror(time.time()):
        from yurt.lifecycle.refresh.archive import catch_up_elsewhere

        catch_up_elsewhere(index, names)
    return warnings


def _unchanged(index: Store, names: Sequence[str]) -> list[str] | None:
    """Return the warnings of a refresh that changed nothing; None if a query is needed."""
    if len(names) != 1 or not early_answer.is_sent():
        return None
    from yurt.lifecycle.refresh.unchanged import unchanged

    found = unchanged(index, names[0])
    return None if found is None else found.notes


def rows(
    store: Store, *, limit: int | None, filters: Sequence[str] = (), context: str = "", unfinished: bool = False
) -> list[RunRow]:
    """Return the runs that match all filters (see lifecycle/filters.py)."""
    return _rows(store, _read(filters), limit=limit, context=context, unfinished=unfinished)


def _read(filters: Sequence[str]) -> Filters:
    if not filters:  # saves the import
        return {}, []
    from yurt.lifecycle.filters import read_filters

    return read_filters(filters)


def _rows(
    store: Store, filters: Filters, *, limit: int | None, context: str = "", unfinished: bool = False
) -> list[RunRow]:
    where, rest = filters
    if context:
        where["context"] = [context]
    if "project" in where:
        where["project"] = store.projects(where["project"])
    found = store.newest(None if rest else limit, where=where, unfinished=unfinished)
    if rest:
        from yurt.lifecycle.filters import passes

        found = (entry for entry in found if passes(store, entry, rest))
    refreshed: dict[str, float | None] = {}
    entries = list(itertools.islice(found, limit))
    expiry = _expiry(store, entries)
    return [_row(store, entry, refreshed, expiry.get(entry.run.id)) for entry in entries]


def _expiry(store: Store, entries: Sequence[Entry]) -> dict[str, float]:
    """Return when sites delete results that are nowhere else, by run."""
    if not any(entry.status.final for entry in entries):
        return {}
    from yurt.storage.purge_rules import purge_rules

    rules = purge_rules(store)
    if not rules:
        return {}
    from yurt.storage.purge_dates import expiry

    return expiry(store, entries, rules, time.time())


def _row(store: Store, entry: Entry, refreshed: dict[str, float | None], deleted_at: float | None = None) -> RunRow:
    run, status = entry.run, entry.status
    if run.home_sync and status.state == "held":
        from yurt.homes import gate

        status = gate.explained(run, status)
    if run.context not in refreshed:
        refreshed[run.context] = store.refreshed_at(run.context)
    last = refreshed[run.context]
    seen = status.seen_at if status.state in FINAL or last is None else max(last, status.seen_at or 0)
    return RunRow(
        id=run.id,
        name=run.name,
        context=run.context,
        project=run.project,
        state=status.state,
        reason=status.why,
        native=status.native,
        job=status.job,
        node=status.node,
        command=run.command,
        params=run.params,
        tags=run.tags,
        created=run.created,
        started=status.started,
        ended=status.ended,
        exit_code=status.exit_code,
        restarts=status.restarts,
        seconds=status.seconds,
        seen_at=seen,
        tasks=run.tasks,
        task_states=status.task_states or ({status.state: run.tasks} if run.tasks else {}),
        candidates=_candidates(store, entry) if run.race == run.id and run.race else [],
        deleted_at=deleted_at,
        usage=status.usage,
    )


def _candidates(store: Store, entry: Entry) -> list[str]:
    final, holders = entry.status.state in FINAL, store.holders(entry.run.id)
    if not entry.run.tasks and (final or holders):
        return []
    names = sorted(set(holders.values())) if final and holders else store.candidates(entry.run.id)
    return list(dict.fromkeys(each.run.context for each in store.several(names)))


def changes(before: Sequence[RunRow], after: Sequence[RunRow]) -> Iterator[RunRow]:
    """Yield rows that are new or have changed."""
    known = {row.id: msgspec.structs.replace(row, seen_at=None) for row in before}
    for row in after:
        if known.get(row.id) != msgspec.structs.replace(row, seen_at=None):
            yield row
