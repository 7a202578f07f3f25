"""metrics: the curves of runs, also while they run."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from yurt.cli import call, render, values
from yurt.cli.completers import run_names
from yurt.cli.declare import argument, option, verb
from yurt.cli.filters import FILTER
from yurt.cli.values import Duration, Number
from yurt.contexts import folders
from yurt.errors import NotFoundError, UserError, YurtError
from yurt.lifecycle import select
from yurt.model import ids
from yurt.model.growth import Kind
from yurt.model.params import shown
from yurt.model.progress import Watch, unwatched
from yurt.model.result import Result
from yurt.store import Entry, Store
from yurt.tracking import follow as following
from yurt.tracking.curves import Reader
from yurt.tracking.labels import labels, varying

KINDS: tuple[Kind, ...] = ("metrics", "events", "mlflow")

NAMED = 20
"""How many names of metrics an error lists."""


class MetricPoint(NamedTuple):
    """An array of a step, a time in seconds since 1970, and a value, which is null in JSON if it is not finite."""

    step: float
    time: float
    value: float | None


class RunMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """What a run or a task has logged."""

    run: str
    label: str
    """Its id, its name, and the parameters in which the shown runs differ."""
    params: dict[str, Any]
    """Those parameters."""
    started: float | None
    """When it started, according to the index."""
    metrics: dict[str, list[MetricPoint]]
    """The points of each metric, in the order of their steps."""


Shown = Result[list[RunMetrics]]


def metrics(
    names: Sequence[str], *, filters: Sequence[str] = (), plot: Sequence[str] = (), watch: Watch = unwatched
) -> Shown:
    """Return the curves of runs and tasks, after bringing what is new to this machine; with `plot`, only these metrics.

    A site that cannot be queried is a warning: the copies on this machine count; without any, its error is raised.
    NotFoundError: no run has logged anything, or none has logged a metric of `plot`.
    """
    index = folders.store()
    entries, warnings = select.meant(index, names, filters, watch=watch)
    failed = _bring(index, entries, watch)
    try:
        return _shown(index, entries, Reader(), plot, [*warnings, *map(_failed, failed)])
    except NotFoundError:
        if failed:  # the metrics may be on the site
            raise failed[0] from None
        raise


def follow(
    names: Sequence[str],
    on_change: Callable[[Shown], None],
    *,
    filters: Sequence[str] = (),
    plot: Sequence[str] = (),
    interval: float | None = None,
    on_word: Callable[[str], None] = lambda _text: None,
    watch: Watch = unwatched,
) -> Shown:
    """Pass the curves to `on_change` whenever new points have come, until the runs have finished; return them at last.

    `on_word` receives notices about sites. Errors as for `metrics`, but runs that have not finished may have logged
    nothing yet.
    """
    index, reader = folders.store(), Reader()
    entries, warnings = select.meant(index, names, filters, watch=watch)
    warnings += map(_failed, _bring(index, entries, watch))
    changed = threading.Event()
    follower = following.Follower(
        index,
        entries,
        KINDS,
        interval=interval or following.INTERVAL,
        on_change=lambda _runs: changed.set(),
        on_word=on_word,
    )
    follower.start()
    try:
        on_change(_shown(index, entries, reader, plot, warnings, wait=follower.following()))
        while follower.following():
            if changed.wait(0.2):
                changed.clear()
                on_change(_shown(index, entries, reader, plot, warnings, wait=True))
    finally:
        follower.stop()
    return _shown(index, entries, reader, plot, warnings)


def _bring(index: Store, entries: Sequence[Entry], watch: Watch) -> list[YurtError]:
    for entry in entries:
        if entry.run.tasks and entry.status.final:  # its folder may be gone
            following.seed(index, index.several([ids.task(entry.run.id, number) for number in range(entry.run.tasks)]))
    return following.bring(index, entries, KINDS, watch=watch)


def _failed(error: YurtError) -> str:
    return f"{error.message}; showing what was copied to this machine before"


def _shown(
    index: Store,
    entries: Sequence[Entry],
    reader: Reader,
    plot: Sequence[str],
    warnings: Sequence[str],
    *,
    wait: bool = False,
) -> Shown:
    """Return the curves that this machine has. With `wait`, the metrics of `plot` need not exist yet."""
    found = reader.of(entries)
    if not wait:
        _check(index, entries, {name for each in found for name in each.curves}, plot)
    known = {entry.run.id: entry for entry in index.several([each.run for each in found])}
    names = labels(list(known.values()))
    vary = varying([entry.run.params for entry in known.values()])
    runs = []
    for each in found:
        entry = known.get(each.run)
        given = {} if entry is None else entry.run.params
        curves = {
            name: [MetricPoint(point.step, point.time, point.value) for point in points]
            for name, points in each.curves.items()
            if not plot or name in plot
        }
        if curves:
            runs.append(
                RunMetrics(
                    run=each.run,
                    label=names.get(each.run, each.run),
                    params={key: given[key] for key in vary if key in given},
                    started=None if entry is None else entry.status.started,
                    metrics=curves,
                )
            )
    without = [] if wait else _without(entries, runs, plot)
    without += [
        f"{each.run}: left out {each.long_lines} {'line' if each.long_lines == 1 else 'lines'} above 1 MB"
        for each in found
        if each.long_lines
    ]
    return Result(kind="metrics", data=runs, warnings=[*warnings, *without])


def _check(index: Store, entries: Sequence[Entry], names: set[str], plot: Sequence[str]) -> None:
    """NotFoundError if there is nothing to show."""
    runs = ", ".join(entry.run.id for entry in entries[:4]) + (" …" if len(entries) > 4 else "")
    if not names and any(index.gone_at(entry.run.sweep or entry.run.id) for entry in entries):
        raise NotFoundError(
            f"{runs}: this machine has no metrics, and `yurt prune` removed the folder from the site", code="not-found"
        )
    if not names:
        raise NotFoundError(
            f"{runs}: no metrics found",
            code="not-found",
            hint="log some in your script, for example: `yurt.log(step=3, loss=0.2)`",
        )
    for name in plot:
        if name not in names:
            from difflib import get_close_matches

            near = get_close_matches(name, names, n=1)
            some = ", ".join(sorted(names)[:NAMED]) + (" …" if len(names) > NAMED else "")
            raise NotFoundError(
                f"{runs}: no metric '{shown(name)}'" + (f"; did you mean '{near[0]}'?" if near else ""),
                code="not-found",
                hint=f"metrics: {some}",
            )


def _without(entries: Sequence[Entry], runs: Sequence[RunMetrics], plot: Sequence[str]) -> list[str]:
    """Return a warning about the named runs of which nothing is shown."""
    have = {each.run for each in runs} | {each.run.partition(".")[0] for each in runs}
    lack = [entry.run.id for entry in entries if entry.run.id not in have]
    if not lack:
        return []
    what = " or ".join(plot) if plot else "metrics"
    if len(lack) == 1:
        return [f"{lack[0]} has not logged {what}"]
    return [f"{len(lack)} runs have not logged {what}: {', '.join(lack[:4])}{' …' if len(lack) > 4 else ''}"]


EXAMPLES = [
    "yurt metrics -",
    "yurt metrics x7q4z 8m2kd --plot loss",
    "yurt metrics - --plot loss --follow",
    "yurt metrics @last-sweep --filter lr=0.1 --plot loss --plot accuracy",
    "yurt metrics @last-sweep --csv > metrics.csv",
]

ROWS = 50
"""Maximum number of rows on a terminal."""


@verb(examples=EXAMPLES, context_help="")
@argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=run_names)
@option("--plot", "plots", metavar="METRIC", multiple=True, help="Draw the curves of a metric; repeatable.")
@option(
    "--over",
    type=values.Choice(["step", "time"]),
    default="step",
    help="Draw curves over steps (default) or over minutes since the start.",
)
@option(
    "--smooth", metavar="WEIGHT", type=Number(0, whole=False), default=0.0, help="Smooth curves: from 0 to below 1."
)
@option("-f", "--follow", is_flag=True, help="Draw again as new values come, until the runs have finished.")
@option(
    "--interval",
    metavar="TIME",
    type=Duration("15s", least=1),
    help="With --follow, the time between queries (default: 15s).",
)
@option("--csv", "as_csv", is_flag=True, help="Print all values as CSV.")
@FILTER
def metrics_command(runs: tuple[str, ...], plots: tuple[str, ...], filters: tuple[str, ...], **options: Any) -> int:
    """Show the metrics of runs, also while they run.

    Reads what scripts log with yurt.log, as event files of TensorBoard, or with MLflow, and brings only what is new
    since the last call. Prints a table of the last, smallest and largest values; with --plot, curves of all runs and
    tasks in one picture. A plot has at most 12 curves: of more, those whose last values are lowest and highest.
    --json and --csv print all values.
    """
    from yurt.cli.progress import watching

    _check_options(options, plots, runs)
    if options["follow"]:
        return _follow(runs, plots, filters, options)
    with watching() as watch:
        found = metrics(runs, filters=filters, plot=plots, watch=watch)
    return render.result(found, lambda: _print(found.data, plots, options), requested=True)


def _check_options(options: dict[str, Any], plots: tuple[str, ...], runs: tuple[str, ...]) -> None:
    """Raise UserError if the options contradict each other."""
    name, as_json = render.command_line(runs[:1]), call.current().json
    for given, other in ((options["as_csv"], "--csv"), (as_json, "--json")):
        if given and options["follow"]:
            hint = f"use `yurt metrics {name} {other}` again later"
            raise UserError(f"--follow and {other} cannot be combined", code="usage", hint=hint)
    if options["as_csv"] and as_json:
        raise UserError("--csv and --json cannot be combined", code="usage", hint=f"use `yurt metrics {name} --csv`")
    if options["smooth"] >= 1:
        text = f"--smooth must be below 1, not '{options['smooth']:g}'"
        raise UserError(text, code="usage", hint="for example: `--smooth 0.9`")
    for name in ("smooth", "interval"):
        needed, there = ("--plot", plots) if name == "smooth" else ("--follow", options["follow"])
        if options[name] and not there:
            example = "--plot loss --smooth 0.9" if name == "smooth" else "--follow --interval 5s"
            hint = f"for example: `yurt metrics {name} {example}`"
            raise UserError(f"--{name} needs {needed}", code="usage", hint=hint)


def _follow(runs: tuple[str, ...], plots: tuple[str, ...], filters: tuple[str, ...], options: dict[str, Any]) -> int:
    from contextlib import ExitStack

    from yurt.cli.progress import watching
    from yurt.cli.screen import Screen

    call.enable_gc()
    last: list[list[RunMetrics]] = []
    with ExitStack() as before, Screen() as screen:

        def on_change(found: Any) -> None:
            before.close()  # the progress bar
            last[:] = [found.data]
            with screen.drawing():
                if found.data:
                    _print(found.data, plots, options)
                else:
                    print("no values yet", file=sys.stderr)

        try:
            done = follow(
                runs,
                on_change,
                filters=filters,
                plot=plots,
                interval=options["interval"],
                on_word=screen.word,
                watch=before.enter_context(watching()),
            )
        except KeyboardInterrupt:
            if screen.close() and last and last[0]:
                _print(last[0], plots, options)
            raise
        redraw = screen.close()
    return render.result(done, lambda: _print(done.data, plots, options) if redraw else None, requested=True)


def _print(found: list[RunMetrics], plots: tuple[str, ...], options: dict[str, Any]) -> None:
    if options["as_csv"]:
        from yurt.cli.metrics_text import as_csv

        render.verbatim(as_csv(found).encode(errors="backslashreplace"))
    elif plots:
        from yurt.cli.metrics_text import print_plot

        for at, name in enumerate(plots):
            if at and not call.plain():
                print()
            print_plot(found, name, number=len(plots), over=options["over"], smooth=options["smooth"])
    else:
        from yurt.cli.metrics_text import print_table

        print_table(found, ROWS if sys.stdout.isatty() else None)
