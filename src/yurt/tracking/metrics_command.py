"""`yurt metrics RUN…`: the metrics of runs as a table, as curves or as CSV."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from yurt.cli import app, render
from yurt.cli.app import run_names, verb
from yurt.cli.filters import FILTER
from yurt.cli.option_types import Duration, Number
from yurt.errors import UserError

if TYPE_CHECKING:
    from yurt.tracking.metrics import RunMetrics

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
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=run_names)
@click.option("--plot", "plots", metavar="METRIC", multiple=True, help="Draw the curves of a metric; repeatable.")
@click.option(
    "--over",
    type=click.Choice(["step", "time"]),
    default="step",
    help="Draw curves over steps (default) or over minutes since the start.",
)
@click.option(
    "--smooth", metavar="WEIGHT", type=Number(0, whole=False), default=0.0, help="Smooth curves: from 0 to below 1."
)
@click.option("-f", "--follow", is_flag=True, help="Draw again as new values come, until the runs have finished.")
@click.option(
    "--interval",
    metavar="TIME",
    type=Duration("15s", least=1),
    help="With --follow, the time between queries (default: 15s).",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print all values as CSV.")
@FILTER
def metrics(runs: tuple[str, ...], plots: tuple[str, ...], filters: tuple[str, ...], **options: Any) -> int:
    """Show the metrics of runs, also while they run.

    Reads what scripts log with yurt.log, as event files of TensorBoard, or with MLflow, and brings only what is new
    since the last call. Prints a table of the last, smallest and largest values; with --plot, curves of all runs and
    tasks in one picture. A plot has at most 12 curves: of more, those whose last values are lowest and highest.
    --json and --csv print all values.
    """
    from yurt.cli.progress import watching
    from yurt.tracking import metrics as verbs

    _check(options, plots, runs)
    if options["follow"]:
        return _follow(runs, plots, filters, options)
    with watching() as watch:
        found = verbs.metrics(runs, filters=filters, plot=plots, watch=watch)
    return render.result(found, lambda: _print(found.data, plots, options), requested=True)


def _check(options: dict[str, Any], plots: tuple[str, ...], runs: tuple[str, ...]) -> None:
    """Raise UserError if the options contradict each other."""
    name, as_json = render.command_line(runs[:1]), app.current().json
    for given, other in ((options["as_csv"], "--csv"), (as_json, "--json")):
        if given and options["follow"]:
            hint = f"use `yurt metrics {name} {other}` again later"
            raise UserError(f"--follow and {other} cannot be combined", code="usage", hint=hint)
    if options["as_csv"] and as_json:
        raise UserError("--csv and --json cannot be combined", code="usage", hint=f"use `yurt metrics {name} --csv`")
    if options["smooth"] >= 1:
        text = f"--smooth must be below 1, not '{options['smooth']:g}'"
        raise UserError(text, code="usage", hint="for example: `--smooth 0.9`")
    for option in ("smooth", "interval"):
        needed, there = ("--plot", plots) if option == "smooth" else ("--follow", options["follow"])
        if options[option] and not there:
            example = "--plot loss --smooth 0.9" if option == "smooth" else "--follow --interval 5s"
            hint = f"for example: `yurt metrics {name} {example}`"
            raise UserError(f"--{option} needs {needed}", code="usage", hint=hint)


def _follow(runs: tuple[str, ...], plots: tuple[str, ...], filters: tuple[str, ...], options: dict[str, Any]) -> int:
    from contextlib import ExitStack

    from yurt.cli.progress import watching
    from yurt.cli.screen import Screen
    from yurt.tracking import metrics as verbs

    app.enable_gc()
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
            done = verbs.follow(
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
            if at and not app.plain():
                print()
            print_plot(found, name, number=len(plots), over=options["over"], smooth=options["smooth"])
    else:
        from yurt.cli.metrics_text import print_table

        print_table(found, ROWS if sys.stdout.isatty() else None)
