"""`yurt ps`: list runs."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from yurt.cli import call, render
from yurt.cli.declare import ONLY_CONTEXT, option, verb
from yurt.cli.listing import Drawn, listing
from yurt.cli.tally_bar import STYLES, TallyBar
from yurt.cli.values import Number

if TYPE_CHECKING:
    from yurt.lifecycle.ps import RunRow
    from yurt.model.result import Result
    from yurt.model.usage import Usage

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
def ps(**options: Any) -> None:
    """List runs, newest first.

    First queries the sites of unfinished runs; --cached skips this.

    Unfinished runs are waiting (saved and not yet submitted), submitting, held, queued, starting, running, requeued or
    unknown (the site does not list the run at the moment). Finished runs are completed, failed, timeout,
    out_of_memory, cancelled, node_failed or lost (no trace of the run is left on the site). In a filter, failed
    stands for every unsuccessful end: also timeout, out_of_memory, node_failed and lost.
    """
    from yurt.lifecycle import ps as verbs

    wanted = {
        "limit": None if options["everything"] else min(options["limit"], sys.maxsize),
        "filters": options["filters"],
        "context": call.current().context,
    }
    if options["watch"]:
        _watch(verbs.watch(**wanted), wide=options["wide"])
        return
    if options["cached"]:
        found = verbs.ps(**wanted, cached=True)
    else:
        from yurt.cli.progress import watching

        with watching() as watch:
            found = verbs.ps(**wanted, watch=watch)
    render.result(found, lambda: _print(found.data, wide=options["wide"]), requested=True)


def _watch(results: Iterator[Result[list[RunRow]]], *, wide: bool) -> None:
    """Print the list after every refresh: in place on a terminal, otherwise only if it changed.

    With --plain, only the rows that changed.
    """
    from yurt.lifecycle.ps import changes

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
