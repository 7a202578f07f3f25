"""Which tasks a user means by --filter: the same as `show SWEEP --filter` lists."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from yurt.errors import NotFoundError, UserError
from yurt.model import sweep_table
from yurt.model.progress import Watch, unwatched
from yurt.store import Entry, Store
from yurt.verbs import sweep
from yurt.verbs.look import look
from yurt.verbs.which import which


def meant(
    store: Store, words: Sequence[str], filters: Sequence[str], *, watch: Watch = unwatched
) -> tuple[list[Entry], list[str]]:
    """What a user names; with filters, in the place of sweeps those of their tasks that pass, as they are now.

    Also returns what to warn of. UserError and NotFoundError as for `which` and `picked`.
    """
    entries = which(store, words)
    if not filters:
        return entries, []
    check(entries)
    warnings = look_at_sweeps(store, entries, watch=watch)
    return tasks(store, picked(store, entries, filters, watch=watch)), warnings


def begun(
    store: Store, words: Sequence[str], filters: Sequence[str] = (), *, watch: Watch = unwatched
) -> tuple[list[Entry], list[str]]:
    """The same for what only a task has that has begun: in the place of sweeps, these of their tasks.

    NotFoundError also where there is none.
    """
    entries = which(store, words)
    if filters:
        check(entries)
    warnings = look_at_sweeps(store, entries, watch=watch)
    numbers = {}
    if filters:
        numbers = {entry.run.id: picks for entry, picks in picked(store, entries, filters, watch=watch)}
    found: list[Entry] = []
    for entry in entries:
        if not entry.run.sets:
            found.append(entry)
            continue
        known = store.tasks(entry.run.id)
        those = numbers.get(entry.run.id, []) if filters else sorted(known)
        found += tasks(store, [(entry, [number for number in those if number in known and known[number].started])])
    if not found:
        names = ", ".join(entry.run.id for entry in entries)
        which_ones = f"no task of {names} that has {' and '.join(filters)}" if filters else f"no task of {names}"
        hint = f"yurt show {entries[0].run.id}"
        raise NotFoundError(f"{which_ones} has begun yet", code="not-found", hint=hint)
    return found, warnings


def look_at_sweeps(store: Store, entries: Sequence[Entry], *, watch: Watch = unwatched) -> list[str]:
    """Look at the sites of sweeps that have not ended, as far as is known. Returns what to warn of."""
    names = sorted({entry.run.context for entry in entries if entry.run.sets and not entry.status.final})
    return look(store, names, watch=watch).warnings if names else []


def picked(
    store: Store, entries: Sequence[Entry], filters: Sequence[str], *, watch: Watch = unwatched
) -> list[tuple[Entry, list[int]]]:
    """Sweeps, each with those of its tasks that pass all filters; sweeps without such a task are left out.

    UserError: something that was named is no sweep, or a filter is wrong. NotFoundError: no task passes.
    """
    check(entries)
    found = []
    for named in entries:
        entry = store.get(named.run.id) or named
        rows = sweep.rows(store, entry, watch=watch)
        passing = sweep.chosen(rows, sweep_table.columns(rows, time.time()), filters=filters, sort="")
        if passing:
            found.append((entry, [row.task for row in passing]))
    if not found:
        names = ", ".join(entry.run.id for entry in entries)
        raise NotFoundError(
            f"no task of {names} has {' and '.join(filters)}", code="not-found", hint=f"yurt show {entries[0].run.id}"
        )
    return found


def check(entries: Sequence[Entry]) -> None:
    """UserError where something is no sweep, of which one could pick tasks."""
    for entry in entries:
        if not entry.run.sets:
            what = f"a task of {entry.run.sweep}" if entry.run.sweep else "one run"
            hint = f"name it without --filter, or a sweep: yurt show {entry.run.sweep or '@last-sweep'}"
            raise UserError(f"--filter picks tasks of sweeps, and {entry.run.id} is {what}", code="usage", hint=hint)


def tasks(store: Store, pairs: Sequence[tuple[Entry, Sequence[int]]]) -> list[Entry]:
    """Tasks of sweeps, as runs. NotFoundError: what they are is not known here."""
    names = [f"{entry.run.id}.{number}" for entry, numbers in pairs for number in numbers]
    found = store.several(names)
    if len(found) < len(names):
        lacking = next(entry for entry, _numbers in pairs if store.plan(entry.run.id) is None)
        raise NotFoundError(
            f"the plan of sweep {lacking.run.id} is not on this machine", code="not-found", hint="yurt ps"
        )
    return found


def by_sweep(entries: Sequence[Entry]) -> Iterator[tuple[str, list[Entry]]]:
    """Runs one by one, with no sweep's name; tasks of a sweep together."""
    together: dict[str, list[Entry]] = {}
    for entry in entries:
        together.setdefault(entry.run.sweep or entry.run.id, []).append(entry)
    for name, group in together.items():
        yield name if group[0].run.sweep else "", group
