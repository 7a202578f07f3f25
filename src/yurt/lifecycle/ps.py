"""ps: list runs, newest first."""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from yurt.cli import call, render
from yurt.cli.declare import ONLY_CONTEXT, option, verb
from yurt.cli.listing import Drawn, listing
from yurt.cli.tally_bar import STYLES, TallyBar
from yurt.cli.values import Number
from yurt.config import paths
from yurt.contexts import early_answer
from yurt.lifecycle.fresh import is_fresh
from yurt.model.result import Result
from yurt.model.run import FINAL, State
from yurt.model.usage import Usage
from yurt.store import Entry, Store

if TYPE_CHECKING:
    from yurt.model.progress import Watch
    from yurt.model.result import Result
    from yurt.model.usage import Usage


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


def watched(
    *, limit: int | None = 50, filters: Sequence[str] = (), context: str = ""
) -> Iterator[Result[list[RunRow]]]:
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


EXAMPLES = [
    "yurt ps",
    "yurt ps --watch",
    "yurt ps --filter state=running --filter lr=0.1",
    "yurt ps --cached --json",
]


@verb(examples=EXAMPLES, context_help=ONLY_CONTEXT)
@option("--cached", is_flag=True, help="Show cached states without querying the sites.")
@option("--wide", is_flag=True, help="Show all columns without truncation.")
@option("--watch", is_flag=True, help="Refresh the list until you press Ctrl-C.")
@option(
    "--filter",
    "filters",
    multiple=True,
    metavar="KEY=VALUE",
    help="Show only runs whose state, context, name, project, tag or parameter KEY equals VALUE, and sweeps with such "
    "a task; repeatable.",
)
@option("-n", "--limit", metavar="N", type=Number(1), default=50, show_default=True, help="Show at most N runs.")
@option("--all", "everything", is_flag=True, help="Show all runs.")
def ps_command(**options: Any) -> None:
    """List runs, newest first.

    First queries the sites of unfinished runs; --cached skips this.

    Unfinished runs are waiting (saved and not yet submitted), submitting, held, queued, starting, running, requeued or
    unknown (the site does not list the run at the moment). Finished runs are completed, failed, timeout,
    out_of_memory, cancelled, node_failed or lost (no trace of the run is left on the site). In a filter, failed
    stands for every unsuccessful end: also timeout, out_of_memory, node_failed and lost.
    """

    wanted = {
        "limit": None if options["everything"] else min(options["limit"], sys.maxsize),
        "filters": options["filters"],
        "context": call.current().context,
    }
    if options["watch"]:
        _watch(watched(**wanted), wide=options["wide"])
        return
    if options["cached"]:
        found = ps(**wanted, cached=True)
    else:
        from yurt.cli.progress import watching

        with watching() as watch:
            found = ps(**wanted, watch=watch)
    render.result(found, lambda: _print(found.data, wide=options["wide"]), requested=True)


def _watch(results: Iterator[Result[list[RunRow]]], *, wide: bool) -> None:
    """Print the list after every refresh: in place on a terminal, otherwise only if it changed.

    With --plain, only the rows that changed.
    """

    call.enable_gc()
    now = call.current()
    in_place = render.visual() and os.environ.get("TERM") not in render.NO_CONTROL and not now.json
    shown: list[RunRow] | None = None
    for found in results:
        if in_place:
            sys.stdout.write("\033[H\033[2J\033[3J")
        changed = found.data if shown is None else list(changes(shown, found.data))
        if in_place or shown is None or changed:
            now.warnings.clear()
            rows = changed if now.plain else found.data
            render.result(found, lambda rows=rows: _print(rows, wide=wide), requested=True)  # type: ignore[misc]
            sys.stdout.flush()
        shown = found.data


def _reason(row: RunRow) -> str:
    reason = render.new_reason(row.state, row.reason)
    if row.deleted_at is None:
        return reason
    from yurt.cli.deletion import deletion

    when = deletion(row.deleted_at, time.time())
    return f"{reason}; {when}" if reason else when


def _took(row: RunRow, started: float, now: float) -> float:
    """Return the run time, at most the age: a job records whole seconds, by the clock of its node."""
    return min(row.seconds or (row.ended or now) - started, now - row.created)


def _cpus(usage: Usage | None) -> str:
    """Return how many CPUs a run kept busy on average."""
    busy = usage.busy_cpus if usage is not None else None
    return "" if busy is None else f"{busy:.1f}"


def _memory(usage: Usage | None) -> str:
    if usage is None or usage.memory_mb is None:
        return ""
    from yurt.model.advice import memory

    return memory(usage.memory_mb)


CELLS: dict[str, Callable[[RunRow, float], str | Drawn]] = {
    "run": lambda row, _now: row.id,
    "name": lambda row, _now: row.name,
    "project": lambda row, _now: row.project,
    "context": lambda row, _now: ", ".join(row.candidates) or row.context,
    "job": lambda row, _now: row.job,
    "node": lambda row, _now: row.node,
    "state": lambda row, _now: row.state,
    "age": lambda row, now: render.span(now - row.created),
    "took": lambda row, now: "" if row.started is None else render.span(_took(row, row.started, now)),
    "cpus": lambda row, _now: _cpus(row.usage),
    "memory": lambda row, _now: _memory(row.usage),
    "exit": lambda row, _now: "" if row.exit_code is None else str(row.exit_code),
    "tags": lambda row, _now: ",".join(row.tags),
    "command": lambda row, _now: render.command_line(row.command),
    "reason": lambda row, _now: TallyBar(row.task_states, _reason(row)) if row.tasks else _reason(row),
}

NARROW = ("run", "name", "context", "state", "age", "took", "command", "reason")


ROOMY = 100
"""On a terminal with fewer columns, ids are shortened and a context that all runs share is left out."""


def _compact(
    rows: Sequence[RunRow], columns: list[str], cells: list[list[str | Drawn]]
) -> tuple[list[str], list[list[str | Drawn]]]:
    """Return the table with the second part of each id, which is enough to name a run, and no needless context."""
    from collections import Counter

    short = [row.id.partition("-")[2] for row in rows]
    times = Counter(short)
    at = columns.index("run")
    for line, name, row in zip(cells, short, rows, strict=True):
        line[at] = name if name and times[name] == 1 else row.id
    if len({row.context for row in rows}) > 1:
        return columns, cells
    gone = columns.index("context")
    return [*columns[:gone], *columns[gone + 1 :]], [[*line[:gone], *line[gone + 1 :]] for line in cells]


def _print(rows: Sequence[RunRow], *, wide: bool) -> None:
    if not rows:
        print("no runs", file=sys.stderr)
        return
    now = time.time()
    columns = list(CELLS) if wide else [name for name in NARROW if name != "name" or any(row.name for row in rows)]
    cells = [[CELLS[column](row, now) for column in columns] for row in rows]
    if not wide and render.visual():
        from yurt.cli import command_cell

        at = columns.index("command")
        for line, cell in zip(cells, command_cell.cells([row.command for row in rows]), strict=True):
            line[at] = cell
    if not wide and render.terminal_columns() < ROOMY:
        columns, cells = _compact(rows, columns, cells)
    styles = [STYLES.get(row.state, "") for row in rows]
    listing(columns, cells, styles=styles, styled="state", shrinks=("name", "command", "reason"), wide=wide)
