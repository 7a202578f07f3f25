"""Which runs a user means: an id, the beginning of either of its parts, `-`, `@last` or `@last-sweep`.

A task of a sweep is SWEEP.NUMBER; --filter picks the tasks that `show SWEEP --filter` lists.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from yurt.errors import NotFoundError, UserError
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.tasks import chosen, task_rows
from yurt.model import ids, sweep_table
from yurt.model.progress import Watch, unwatched
from yurt.store import Entry, Store

LAST = ("-", "@last")
LAST_SWEEP = "@last-sweep"

DIGITS = 12
"""No sweep has a task whose number is longer."""


def which(store: Store, words: Sequence[str]) -> list[Entry]:
    """The runs that are meant, each once. NotFoundError and UserError name the word that is wrong."""
    found: dict[str, Entry] = {}
    for word in words:
        entry = _one(store, word)
        found[entry.run.id] = entry
    return list(found.values())


def _one(store: Store, word: str) -> Entry:
    first, dot, number = word.partition(".")
    if dot and number.isascii() and number.isdigit():
        return _task(store, word, first, number)
    if word in LAST:
        newest = next(store.newest(1), None)
        if newest is None:
            raise NotFoundError("there are no runs yet", code="not-found", hint="yurt run train.py")
        return newest
    if word == LAST_SWEEP:
        return _last_sweep(store)
    return _named(store, word, store.matching(word.lower()) if word and word.isascii() else [])


def _named(store: Store, word: str, matches: Sequence[str]) -> Entry:
    if not matches:
        raise NotFoundError(f"there is no run '{word}'", code="not-found", hint="yurt ps")
    if len(matches) > 1 and word.lower() not in matches:
        shown = ", ".join(matches[:4]) + (" …" if len(matches) > 4 else "")
        raise UserError(f"'{word}' may be {len(matches)} runs: {shown}", code="usage", hint="type more of it")
    entry = store.get(word.lower() if word.lower() in matches else matches[0])
    if entry is None:
        raise NotFoundError(f"there is no run '{word}'", code="not-found", hint="yurt ps")
    return entry


def _last_sweep(store: Store) -> Entry:
    newest = next((entry for entry in store.newest() if entry.run.tasks), None)
    if newest is None:
        hint = "yurt run --grid lr=0.1,0.01 train.py"
        raise NotFoundError("there are no sweeps yet", code="not-found", hint=hint)
    return newest


def _task(store: Store, word: str, first: str, number: str) -> Entry:
    """A task, by whatever names its sweep. Of runs and sweeps that a word may be, only sweeps have tasks."""
    if first in (*LAST, LAST_SWEEP):
        sweep = _one(store, first)
    else:
        matches = store.matching(first.lower()) if first and first.isascii() else []
        if not matches:
            raise NotFoundError(f"there is no run '{word}'", code="not-found", hint="yurt ps")
        sweep = _named(store, first, [each for each in matches if ids.is_sweep(each)] or matches)
    run, shown = sweep.run, number if len(number) <= DIGITS else f"{number[:DIGITS]}…"
    if not run.tasks:
        raise NotFoundError(
            f"run {run.id} is no sweep: it has no task {shown}", code="not-found", hint=f"yurt show {run.id}"
        )
    if len(number) > DIGITS or int(number) >= run.tasks:
        raise NotFoundError(
            f"sweep {run.id} has no task {shown}, its tasks are 0 to {run.tasks - 1}",
            code="not-found",
            hint=f"yurt show {run.id}",
        )
    entry = store.get(ids.task(run.id, int(number)))
    if entry is None:
        raise NotFoundError(f"the plan of sweep {run.id} is not on this machine", code="not-found", hint="yurt ps")
    return entry


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
    warnings = refresh_sweeps(store, entries, watch=watch)
    return task_entries(store, picked(store, entries, filters, watch=watch)), warnings


def begun(
    store: Store, words: Sequence[str], filters: Sequence[str] = (), *, watch: Watch = unwatched
) -> tuple[list[Entry], list[str]]:
    """The same for what only a task has that has begun: in the place of sweeps, these of their tasks.

    NotFoundError also where there is none.
    """
    entries = which(store, words)
    if filters:
        check(entries)
    warnings = refresh_sweeps(store, entries, watch=watch)
    numbers = {}
    if filters:
        numbers = {entry.run.id: picks for entry, picks in picked(store, entries, filters, watch=watch)}
    found: list[Entry] = []
    for entry in entries:
        if not entry.run.tasks:
            found.append(entry)
            continue
        known = store.tasks(entry.run.id)
        those = numbers.get(entry.run.id, []) if filters else sorted(known)
        found += task_entries(
            store, [(entry, [number for number in those if number in known and known[number].started])]
        )
    if not found:
        names = ", ".join(entry.run.id for entry in entries)
        which_ones = f"no task of {names} that has {' and '.join(filters)}" if filters else f"no task of {names}"
        hint = f"yurt show {entries[0].run.id}"
        raise NotFoundError(f"{which_ones} has begun yet", code="not-found", hint=hint)
    return found, warnings


def refresh_sweeps(store: Store, entries: Sequence[Entry], *, watch: Watch = unwatched) -> list[str]:
    """Look at the sites of sweeps that have not ended, as far as is known. Returns what to warn of."""
    names = sorted({entry.run.context for entry in entries if entry.run.tasks and not entry.status.final})
    return refresh_contexts(store, names, watch=watch).warnings if names else []


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
        rows = task_rows(store, entry, watch=watch)
        passing = chosen(rows, sweep_table.columns(rows, time.time()), filters=filters, sort="")
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
        if not entry.run.tasks:
            what = f"a task of {entry.run.sweep}" if entry.run.sweep else "one run"
            hint = f"name it without --filter, or a sweep: yurt show {entry.run.sweep or '@last-sweep'}"
            raise UserError(f"--filter picks tasks of sweeps, and {entry.run.id} is {what}", code="usage", hint=hint)


def task_entries(store: Store, pairs: Sequence[tuple[Entry, Sequence[int]]]) -> list[Entry]:
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
