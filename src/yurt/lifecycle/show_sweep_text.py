"""`yurt show SWEEP`: the state of a sweep, and its tasks as a table, as CSV or as a plot."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from yurt.cli import call, render
from yurt.cli.listing import listing
from yurt.cli.tally_bar import STYLES, TallyBar
from yurt.errors import UserError

if TYPE_CHECKING:
    from yurt.lifecycle.show import ShownSweep
    from yurt.lifecycle.show_here import Here
    from yurt.lifecycle.tasks import Plotted, SweepShown
    from yurt.model.sweep_table import Column, TaskRow

ROWS = 50
"""Maximum number of tasks shown on a terminal without --limit."""

WIDEST = 28
"""Maximum width of a value on a terminal."""


def check(sweep: str, options: dict[str, Any], *, as_json: bool) -> None:
    """Raise UserError if the options contradict each other."""
    if options["as_csv"] and as_json:
        raise UserError("--csv and --json cannot be combined", code="usage", hint=f"use `yurt show {sweep} --csv`")
    if options["as_csv"] and options["plot"]:
        raise UserError("--csv and --plot cannot be combined", code="usage", hint=f"use `yurt show {sweep} --csv`")
    if options["over"] and not options["plot"]:
        over = options["over"]
        hint = f"for example: `yurt show {sweep} --plot loss --over {over}`"
        raise UserError("--over needs --plot", code="usage", hint=hint)


def show_sweep(found: ShownSweep, *, limit: int | None, as_csv: bool) -> None:
    """Print a sweep: its table as CSV, its plot if there is one, or its state and its table."""
    from yurt.model import sweep_table

    def print_text() -> None:
        rows = found.data.rows
        if as_csv:
            render.verbatim(sweep_table.as_csv(found.columns, rows).encode(errors="backslashreplace"))
        elif found.plot is not None:
            _plot(found.data.run.id, found.plot)
        else:
            most = ROWS if limit is None and sys.stdout.isatty() else None
            same = sweep_table.constant(found.every)
            _head(found.data, found.here, same)
            _table([each for each in found.columns if _shown(each, same)], rows[:most], keep=found.named)
            _more(found.data, len(rows[:most]), found.passing)

    render.result(found, print_text, requested=True)


def _shown(column: Column, same: Collection[str]) -> bool:
    from yurt.model.sweep_table import bare

    return column.part != "params" or bare(column) not in same


def _head(found: SweepShown, here: Here, same: dict[str, Any]) -> None:
    from yurt.cli.run_facts import head, print_facts, print_parts, settings, took
    from yurt.cli.usage_text import tasks_used

    status = found.status
    print_facts(
        [
            *head(found, here),
            ("tasks", TallyBar(found.task_states)),
            ("submitted", render.moment(here.submitted)),
            ("started", render.moment(status.started)),
            ("finished", render.moment(status.ended)),
            ("took", took(status)),
            ("used", tasks_used(found.run, found.usage)),
            ("refreshed", render.moment(here.refreshed_at)),
        ]
    )
    print_parts(parameters=[(key, value, "") for key, value in same.items()], settings=settings(found.run))


def _table(columns: Sequence[Column], rows: Sequence[TaskRow], *, keep: Collection[str]) -> None:
    from yurt.model.sweep_table import fitting, number

    print()
    if not rows:
        return
    terminal = render.visual()
    cells = {each.title: [_text(each, row, truncate=terminal) for row in rows] for each in columns}
    shown, left_out = list(columns), list[Any]()
    if terminal:
        widths = {title: max(map(render.width, [title, *texts])) for title, texts in cells.items()}
        shown, left_out = fitting(columns, widths, render.terminal_columns(), keep)
    right = [
        each.title
        for each in shown
        if each.title == "took" or all(number(value) is not None for row in rows if (value := each.of(row)) is not None)
    ]
    lines = list(zip(*(cells[each.title] for each in shown), strict=True))
    styles = [STYLES.get(row.state, "") for row in rows]
    listing([each.title for each in shown], lines, styles=styles, styled="state", numbers=right)
    if left_out:
        names = ", ".join(each.title for each in left_out)
        print(f"columns not shown: {render.plain(names)}; --csv prints all columns", file=sys.stderr)


def _text(column: Column, row: TaskRow, *, truncate: bool) -> str:
    from yurt.model.params import summary

    value = column.of(row)
    if value is None:
        return ""
    if column.title == "took":
        return render.span(value)
    text = f"{value:.6g}" if isinstance(value, float) and column.part == "metrics" else summary(value)
    return render.short(text, WIDEST if truncate else render.LONGEST_VALUE)


def _more(found: SweepShown, shown: int, matching: int) -> None:
    if shown < matching:
        print(f"{_tasks(matching - shown, 'more ')}; --limit {matching} shows all", file=sys.stderr)
    elif matching < found.run.tasks:
        print(f"{matching} of {found.run.tasks} tasks", file=sys.stderr)


def _tasks(count: int, adjective: str = "") -> str:
    return f"{count} {adjective}{'task' if count == 1 else 'tasks'}"


def _plot(sweep: str, drawn: Plotted) -> None:
    import shutil

    from yurt.model import plot

    if call.plain():
        print(render.plain(f"{sweep}: {drawn.metric} over {drawn.over}"))
        for point in drawn.points:
            print(render.plain(f"{drawn.over} {render.readable(point.x)}: {plot.words(point)}"))
        _without(drawn.without)
        return
    size = shutil.get_terminal_size()
    made = plot.draw(drawn.points, size.columns, max(6, min(20, size.lines - 6)))
    several = any(len(point.values) > 1 for point in drawn.points)
    up = f"{drawn.metric} (log)" if made.log_y else drawn.metric
    over = f"{drawn.over} (log)" if made.log_x else drawn.over
    print(render.plain(f"{sweep}: {up} over {over}" + (", mean and range" if several else "")))
    print("\n".join(map(render.plain, made.lines)))
    _without(drawn.without)


def _without(tasks: int) -> None:
    if tasks:
        print(f"{_tasks(tasks)} without a number to plot", file=sys.stderr)
