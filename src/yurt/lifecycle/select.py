"""Finds the runs that a user names: an id, a prefix of either of its parts, a name, a job, `-`, `@last`, `@last-sweep`.

A task of a sweep is SWEEP.NUMBER; --filter picks the tasks that `show SWEEP --filter` lists.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from yurt.errors import NotFoundError, UserError, one_of
from yurt.model import ids, layout
from yurt.model.params import shown
from yurt.model.progress import Watch, unwatched
from yurt.store import Entry, Store

LAST_HERE, LAST = "-", "@last"
LAST_SWEEP = "@last-sweep"

DIGITS = 12
"""Maximum number of digits of a task number."""


def which(store: Store, words: Sequence[str]) -> list[Entry]:
    """Return the named runs, each once. NotFoundError and UserError contain the name that is wrong."""
    found: dict[str, Entry] = {}
    for word in words:
        entry = _one(store, word)
        found[entry.run.id] = entry
    return list(found.values())


def name_warnings(store: Store, words: Sequence[str]) -> list[str]:
    """Return a warning for each word that is a prefix of the id of another project's run, and of names of runs.

    An id goes before a name, but the user may have meant a name. Errors as for `which`.
    """
    return [text for word in words if (text := _name_warning(store, word))]


def _name_warning(store: Store, word: str) -> str:
    first, dot, number = word.partition(".")
    prefix = first if dot and number.isdigit() else word
    names = store.names(prefix) if prefix.isascii() and prefix.isalnum() else []
    if not names or prefix in names:
        return ""
    run = _one(store, word).run
    if not any(part.startswith(prefix.lower()) for part in (run.id, run.id.partition("-")[2])):
        return ""
    if layout.same_folder(run.project, _project()):
        return ""
    some = ", ".join(names[:3]) + (" …" if len(names) > 3 else "")
    return f"'{prefix}' is a prefix of the id {run.id}, a run of project {run.project}; names with this prefix: {some}"


def _project() -> str:
    """Return the project of the current folder."""
    from yurt.contexts.project import Project

    return Project().label


def _one(store: Store, word: str) -> Entry:
    first, dot, number = word.partition(".")
    if dot and number.isascii() and number.isdigit():
        try:
            return _task(store, word, first, number)
        except NotFoundError:  # a name may end with a number, such as lr0.1
            if (named := _of_name(store, word)) is not None:
                return named
            raise
    if word in (LAST_HERE, LAST):
        return _last(store, word)
    if word == LAST_SWEEP:
        return _last_sweep(store)
    matches = store.matching(word.lower()) if word and word.isascii() else []
    if word.lower() in matches:
        return _named(store, word, matches)
    return _of_name(store, word) or _of_job(store, word, matches) or _named(store, word, matches)


def _of_name(store: Store, word: str) -> Entry | None:
    """Return the newest run with a name, of this project if it has one."""
    name = shown(word)
    return (store.last(name=name, project=_project()) or store.last(name=name)) if name else None


def _last(store: Store, word: str) -> Entry:
    """Return the newest run, of this project or of all."""
    if why := store.last_refused():
        raise _refused(store, word, why)
    newest = store.last(project=_project() if word == LAST_HERE else "")
    if newest is not None:
        return newest
    other = store.last() if word == LAST_HERE else None
    if other is None:
        raise NotFoundError("there are no runs yet", code="not-found", hint="submit one with `yurt run train.py`")
    hint = f"the newest run of all projects is `@last`: {other.run.id} of {other.run.project}"
    raise NotFoundError("there are no runs of this project yet", code="not-found", hint=hint)


def _of_job(store: Store, word: str, matches: Sequence[str]) -> Entry | None:
    """Return the run of a job: CONTEXT:NUMBER, or a NUMBER that no other run has. UserError if there are several."""
    context, colon, job = word.rpartition(":")
    if not (job.isascii() and job.replace("_", "", 1).isdigit()):
        return None
    found = store.of_job(job, context)
    if not found:
        return None
    if len(found) + (0 if colon else len(matches)) > 1:
        runs = [*found, *matches]
        where = {entry.run.context for entry in store.several(found)}
        hint = f"use {one_of(runs[:4])}"
        if not colon and len(where) == len(found):  # the job is then unambiguous
            hint += f", or the context and the job, for example: `{min(where)}:{job}`"
        raise UserError(f"'{word}' is ambiguous: it matches {len(runs)} runs", code="usage", hint=hint)
    return store.get(found[0])


def _unknown(word: str) -> NotFoundError:
    return NotFoundError(f"run '{word}' not found", code="not-found", hint="list runs with `yurt ps`")


def _refused(store: Store, word: str, why: str) -> NotFoundError:
    before = store.last()
    hint = (
        f"name the run before it, {before.run.id}: `yurt show {before.run.id}`"
        if before
        else "list runs with `yurt ps`"
    )
    return NotFoundError(f"'{word}' names no run: your last run was rejected: {why}", code="not-found", hint=hint)


def _named(store: Store, word: str, matches: Sequence[str]) -> Entry:
    if not matches:
        raise _unknown(word)
    if len(matches) > 1 and word.lower() not in matches:
        names = ", ".join(matches[:4]) + (" …" if len(matches) > 4 else "")
        text = f"'{word}' is ambiguous: it matches {len(matches)} runs: {names}"
        raise UserError(text, code="usage", hint="type more characters of the run id")
    entry = store.get(word.lower() if word.lower() in matches else matches[0])
    if entry is None:
        raise _unknown(word)
    return entry


def _last_sweep(store: Store) -> Entry:
    newest = store.last(sweep=True)
    if newest is None:
        hint = "submit one with `yurt run --grid lr=0.1,0.01 train.py`"
        raise NotFoundError("there are no sweeps yet", code="not-found", hint=hint)
    return newest


def _task(store: Store, word: str, first: str, number: str) -> Entry:
    """Return a task by any name of its sweep. If a prefix matches runs and sweeps, only the sweeps count."""
    matches = store.matching(first.lower()) if first and first.isascii() else []
    if first in (LAST_HERE, LAST, LAST_SWEEP):
        sweep = _one(store, first)
    elif not matches:
        found = _of_name(store, first) or _of_job(store, first, matches)
        if found is None:
            raise _unknown(word)
        sweep = found
    else:
        sweep = _named(store, first, [each for each in matches if ids.is_sweep(each)] or matches)
    run, task = sweep.run, number if len(number) <= DIGITS else f"{number[:DIGITS]}…"
    if not run.tasks:
        raise NotFoundError(
            f"run {run.id} is not a sweep and has no task {task}",
            code="not-found",
            hint=f"see the run with `yurt show {run.id}`",
        )
    while len(number) <= DIGITS and int(number) >= run.tasks and (older := store.get(run.retry_of or "")):
        run = older.run  # a retry of some tasks has fewer numbers
    if len(number) > DIGITS or int(number) >= run.tasks:
        run = sweep.run
        raise NotFoundError(
            f"sweep {run.id} has no task {task}; its tasks are 0 to {run.tasks - 1}",
            code="not-found",
            hint=f"list its tasks with `yurt show {run.id}`",
        )
    entry = store.get(ids.task(run.id, int(number)))
    if entry is None:
        raise no_plan(run.id)
    return entry


def meant(
    store: Store, words: Sequence[str], filters: Sequence[str], *, watch: Watch = unwatched
) -> tuple[list[Entry], list[str]]:
    """Return the named runs and warnings. With filters, sweeps are refreshed and replaced by their matching tasks.

    UserError and NotFoundError as for `which` and `picked`.
    """
    entries, warnings = which(store, words), name_warnings(store, words)
    if not filters:
        return entries, warnings
    check(entries)
    warnings += refresh_sweeps(store, entries, watch=watch)
    return task_entries(store, picked(store, entries, filters, watch=watch)), warnings


def begun(
    store: Store, words: Sequence[str], filters: Sequence[str] = (), *, watch: Watch = unwatched
) -> tuple[list[Entry], list[str]]:
    """Return the same, with each sweep replaced by its tasks that have started.

    NotFoundError also if none has started.
    """
    entries, warnings = which(store, words), name_warnings(store, words)
    if filters:
        check(entries)
    warnings += refresh_sweeps(store, entries, watch=watch)
    numbers = {}
    if filters:
        numbers = {entry.run.id: picks for entry, picks in picked(store, entries, filters, watch=watch)}
    found: list[Entry] = []
    for entry in entries:
        if not entry.run.tasks:
            found.append(entry)
            continue
        known = store.tasks(entry.run.id)
        candidates = numbers.get(entry.run.id, []) if filters else sorted(known)
        found += task_entries(
            store, [(entry, [number for number in candidates if number in known and known[number].started])]
        )
    if not found:
        names = ", ".join(entry.run.id for entry in entries)
        subject = f"no task of {names} with {' and '.join(filters)}" if filters else f"no task of {names}"
        hint = f"see its tasks with `yurt show {entries[0].run.id}`"
        raise NotFoundError(f"{subject} has started yet", code="not-found", hint=hint)
    return found, warnings


def refresh_sweeps(store: Store, entries: Sequence[Entry], *, watch: Watch = unwatched) -> list[str]:
    """Refresh the contexts of unfinished sweeps. Return warnings."""
    names = sorted({entry.run.context for entry in entries if entry.run.tasks and not entry.status.final})
    if not names:
        return []
    from yurt.lifecycle.refresh.refresh import refresh_contexts

    return refresh_contexts(store, names, watch=watch).warnings


def picked(
    store: Store, entries: Sequence[Entry], filters: Sequence[str], *, watch: Watch = unwatched
) -> list[tuple[Entry, list[int]]]:
    """Return sweeps with the numbers of their tasks that pass all filters. Sweeps without such a task are left out.

    UserError: an entry is not a sweep, or a filter is invalid. NotFoundError: no task passes.
    """
    from yurt.lifecycle.tasks import chosen, task_rows
    from yurt.model import sweep_table

    check(entries)
    found = []
    for named in entries:
        entry = store.get(named.run.id) or named
        rows = task_rows(store, entry, watch=watch)
        passing = chosen(rows, sweep_table.columns(rows, time.time()), filters=filters, sort="")
        if passing:
            found.append((entry, [row.task for row in passing]))
    if not found:
        raise no_match(entries, filters)
    return found


def no_match(entries: Sequence[Entry], filters: Sequence[str]) -> NotFoundError:
    """Return the error for filters that no task of these sweeps passes."""
    names = ", ".join(entry.run.id for entry in entries)
    return NotFoundError(
        f"no task of {names} matches {' and '.join(filters)}",
        code="not-found",
        hint=f"list all tasks with `yurt show {entries[0].run.id}`",
    )


def check(entries: Sequence[Entry]) -> None:
    """Raise UserError if an entry is not a sweep."""
    for entry in entries:
        if not entry.run.tasks:
            what = f"a task of {entry.run.sweep}" if entry.run.sweep else "a single run"
            sweep = entry.run.sweep or "@last-sweep"
            hint = f"remove `--filter`, or name a sweep, for example: `{sweep}`"
            raise UserError(f"--filter selects tasks of a sweep, but {entry.run.id} is {what}", code="usage", hint=hint)


def task_entries(store: Store, pairs: Sequence[tuple[Entry, Sequence[int]]]) -> list[Entry]:
    """Return tasks of sweeps as runs. NotFoundError if the index has no plan of the sweep."""
    names = [f"{entry.run.id}.{number}" for entry, numbers in pairs for number in numbers]
    found = store.several(names)
    if len(found) < len(names):
        lacking = next(entry for entry, _numbers in pairs if store.plan(entry.run.id) is None)
        raise no_plan(lacking.run.id)
    return found


def no_plan(run: str) -> NotFoundError:
    """Return the error for a run, or a sweep, whose plan is not in the index."""
    what = "sweep" if ids.is_sweep(run) else "run"
    return NotFoundError(
        f"{what} {run} was submitted from another machine, and this machine has only part of its record",
        code="not-found",
        hint="run the command on the machine that submitted it",
    )


def by_sweep(entries: Sequence[Entry]) -> Iterator[tuple[str, list[Entry]]]:
    """Group tasks by sweep. Each run is a group of its own, with an empty sweep name."""
    together: dict[str, list[Entry]] = {}
    for entry in entries:
        together.setdefault(entry.run.sweep or entry.run.id, []).append(entry)
    for name, group in together.items():
        yield name if group[0].run.sweep else "", group


def with_tasks(store: Store, entries: Sequence[Entry]) -> list[Entry]:
    """Return the runs, and the started tasks of the sweeps among them."""
    sweeps = [entry for entry in entries if entry.run.tasks]
    begun = [[n for n, status in store.tasks(entry.run.id).items() if status.started] for entry in sweeps]
    return [*entries, *task_entries(store, list(zip(sweeps, begun, strict=True)))]
