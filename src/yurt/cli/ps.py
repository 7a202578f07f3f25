"""`yurt ps`: how runs stand."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from yurt import queue_prefetch
from yurt.cli import app, render
from yurt.cli.app import verb
from yurt.cli.tally_bar import STYLES, TallyBar

if TYPE_CHECKING:
    from yurt.store import Store
    from yurt.verbs.ps import Row

EXAMPLES = [
    "yurt ps",
    "yurt ps --watch",
    "yurt ps --filter state=running --filter lr=0.1",
    "yurt ps --cached --json",
]


@verb(examples=EXAMPLES)
@click.option("--cached", is_flag=True, help="Ask no site: show what was last known.")
@click.option("--wide", is_flag=True, help="All columns, whatever the width of the terminal.")
@click.option("--watch", is_flag=True, help="Go on showing, until Ctrl-C.")
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="KEY=VALUE",
    help="Only runs with this state, context, name, project, tag or parameter.",
)
@click.option("-n", "--limit", metavar="N", type=click.IntRange(1), default=50, show_default=True, help="How many.")
@click.option("--all", "everything", is_flag=True, help="All there are, not only the newest.")
def ps(**options: Any) -> None:
    """List runs, the newest first, after asking the sites of those that have not ended."""
    from yurt.config import paths
    from yurt.store import Store
    from yurt.verbs import ps as verbs

    now = app.current()
    index = Store(f"{paths.data_home()}/yurt.db")
    limit = None if options["everything"] else options["limit"]

    def rows() -> list[Row]:
        return verbs.rows(index, limit=limit, filters=options["filters"], context=now.context)

    verbs.read_filters(options["filters"])  # before any site is asked: a wrong one is said at once
    if options["watch"]:
        _watch(index, rows, wide=options["wide"])
        return
    if not options["cached"]:
        _look(index)
    found = rows()
    render.show("runs", found, lambda: _print(found, wide=options["wide"]), asked=True)


def _look(index: Store) -> None:
    contexts = _contexts(index)
    if not contexts:
        queue_prefetch.forget()
    else:
        from yurt.cli.progress import watching
        from yurt.lifecycle.refresh.refresh import refresh_contexts

        with watching() as watch:
            app.current().warnings += refresh_contexts(index, contexts, watch=watch).warnings
    if index.contexts_to_mirror(time.time()):
        from yurt.lifecycle.refresh.archive import catch_up_elsewhere

        catch_up_elsewhere(index, contexts)


def _contexts(index: Store) -> list[str]:
    """Contexts to look at: those with unfinished runs, or the one named by --context."""
    only = app.current().context
    return [name for name in index.contexts_of_unfinished() if only in ("", name)]


def _watch(index: Store, rows: Callable[[], list[Row]], *, wide: bool) -> None:
    """Show again after every look; looks become rarer while nothing changes."""
    from yurt.lifecycle.refresh.refresh import refresh_contexts
    from yurt.verbs import ps as verbs

    app.stay()
    now = app.current()
    terminal = sys.stdout.isatty() and not now.json
    shown: list[Row] | None = None
    pause = 2.0
    while True:
        now.warnings[:] = refresh_contexts(index, _contexts(index)).warnings
        found = rows()
        changed = shown is None or any(verbs.changes(shown, found))
        if terminal:
            sys.stdout.write("\033[H\033[2J\033[3J")
        if terminal or changed:
            _show(found, wide=wide)
        shown = found
        pause = 2.0 if changed else min(pause * 1.5, 30.0)
        time.sleep(pause)


def _show(found: list[Row], *, wide: bool) -> None:
    render.show("runs", found, lambda: _print(found, wide=wide), asked=True)
    sys.stdout.flush()


CELLS: dict[str, Callable[[Row, float], str | render.Drawn]] = {
    "run": lambda row, _now: row.id,
    "name": lambda row, _now: row.name,
    "project": lambda row, _now: row.project,
    "context": lambda row, _now: row.context,
    "job": lambda row, _now: row.job,
    "node": lambda row, _now: row.node,
    "state": lambda row, _now: row.state,
    "age": lambda row, now: render.span(now - row.created),
    "took": lambda row, now: (
        "" if row.started is None else render.span(row.seconds or (row.ended or now) - row.started)
    ),
    "exit": lambda row, _now: "" if row.exit_code is None else str(row.exit_code),
    "tags": lambda row, _now: ",".join(row.tags),
    "command": lambda row, _now: render.words(row.command),
    "why": lambda row, _now: TallyBar(row.task_states, row.reason) if row.tasks else row.reason,
}

NARROW = ("run", "name", "context", "state", "age", "took", "command", "why")


def _print(rows: Sequence[Row], *, wide: bool) -> None:
    if not rows:
        print("no runs", file=sys.stderr)
        return
    now = time.time()
    columns = list(CELLS) if wide else [name for name in NARROW if name != "name" or any(row.name for row in rows)]
    cells = [[CELLS[column](row, now) for column in columns] for row in rows]
    styles = [STYLES.get(row.state, "") for row in rows]
    render.listing(columns, cells, styles=styles, styled="state", shrinks=("name", "command", "why"), wide=wide)
