"""`yurt tensorboard [RUN…]`: show the curves of runs in TensorBoard."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from yurt.cli import app, render
from yurt.cli.app import run_names, verb
from yurt.cli.browser import browser
from yurt.cli.filters import FILTER
from yurt.cli.option_types import Duration

if TYPE_CHECKING:
    from yurt.model.result import Result
    from yurt.tracking.tensorboard.tensorboard import TensorboardPage

EXAMPLES = [
    "yurt tensorboard",
    "yurt tensorboard @last-sweep baseline",
    "yurt tensorboard @last-sweep --filter lr=0.1",
    "yurt tensorboard - --logdir 'lightning_logs/*' --no-browser",
]

FEW = 4
"""Maximum number of runs that are printed."""


@verb(examples=EXAMPLES, context_help="")
@click.argument("runs", nargs=-1, metavar="[RUN...]", shell_complete=run_names)
@FILTER
@click.option("--logdir", metavar="GLOB", default="", help="Show only event files in folders that match GLOB.")
@click.option("--no-browser", is_flag=True, help="Print the URL and do not open a browser.")
@click.option(
    "--interval",
    metavar="TIME",
    type=Duration("15s", least=1, most=3600),
    default="15s",
    help="Seconds between two queries of a site (default: 15s).",
)
def tensorboard(runs: tuple[str, ...], filters: tuple[str, ...], logdir: str, no_browser: bool, interval: float) -> int:
    """Show the curves of runs in TensorBoard.

    Downloads the event files of runs from all their contexts and opens one TensorBoard on this machine, which shows
    them side by side under yurt's names and parameters. Follows running runs, downloading only what is new, until you
    press Ctrl-C; the exit code is then 0. A query that finds nothing new doubles the interval, up to two minutes.

    Without RUN, it shows the unfinished runs of this project, or the newest one if all have finished. Event files are
    found wherever the script wrote them. A run without event files is shown with the metrics of yurt.log. GLOB is a
    path relative to the working directory or the outputs of the run, such as `runs/*`.

    The page is on 127.0.0.1, and only the printed URL opens it.
    """
    from contextlib import ExitStack

    from yurt.cli.progress import watching
    from yurt.tracking.tensorboard import tensorboard as verbs

    app.enable_gc()
    now = app.current()

    def on_open(found: Result[TensorboardPage]) -> None:
        progress.close()
        render.result(found, lambda: _print(found.data), requested=True)
        sys.stdout.flush()

    def on_word(text: str) -> None:
        if not now.quiet:
            print(f"yurt: {render.escaped(text)}", file=sys.stderr, flush=True)

    with ExitStack() as progress:
        done = verbs.tensorboard(
            runs,
            filters=filters,
            logdir=logdir,
            interval=interval,
            on_open=on_open,
            on_word=on_word,
            browser=browser(wanted=not no_browser),
            watch=progress.enter_context(watching()),
        )
    return done.exit_code


def _print(page: TensorboardPage) -> None:
    if not app.current().quiet:
        empty = [run for run in page.runs if run.final and not run.labels]
        if empty:
            print(f"yurt: no curves: {_few([run.id for run in empty])}", file=sys.stderr)
        rest = [run for run in page.runs if run not in empty]
        word = "showing" if all(run.final for run in rest) else "following"
        curves = "" if any(run.labels for run in rest) else "; no curves yet"
        names = _few([f"{run.id} ({run.context})" for run in rest])
        print(f"yurt: {f'{word} {names}{curves}; ' if rest else ''}press Ctrl-C to end", file=sys.stderr, flush=True)
    print(page.url)


def _few(names: list[str]) -> str:
    return ", ".join(names[:FEW]) + (f" and {len(names) - FEW} more" if len(names) > FEW else "")
