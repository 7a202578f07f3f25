"""`yurt mlflow`: runs in MLflow."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from yurt.cli import app, render
from yurt.cli.app import run_names, verb
from yurt.cli.browser import browser

if TYPE_CHECKING:
    from yurt.model.result import Result
    from yurt.tracking.mlflow.mlflow import InMlflow

EXAMPLES = [
    "yurt mlflow",
    "yurt mlflow @last-sweep --no-browser",
    "yurt mlflow x7q4z --artifacts --no-serve",
    "yurt mlflow --to https://mlflow.example",
]


@verb(examples=EXAMPLES, context_help="Use the `mlflow_uri` of this context for --to.")
@click.argument("runs", nargs=-1, metavar="[RUN]...", shell_complete=run_names)
@click.option(
    "--to",
    metavar="URI",
    is_flag=False,
    flag_value="",
    default=None,
    help="Send to this MLflow server instead; without URI, to the setting `mlflow_uri`.",
)
@click.option("--artifacts", is_flag=True, help="Also fetch the results of the runs and add them as artifacts.")
@click.option("--no-browser", is_flag=True, help="Print the address of the page instead of opening a browser.")
@click.option("--no-serve", is_flag=True, help="Only bring the store on this machine up to date.")
@click.option("--due", is_flag=True, hidden=True, help="Send finished runs with the setting `track`, and exit.")
def mlflow(
    runs: tuple[str, ...], *, to: str | None, artifacts: bool, no_browser: bool, no_serve: bool, due: bool
) -> int:
    """Show runs in MLflow, or send them to your MLflow server.

    Brings an MLflow store on this machine up to date with the named runs, or with all runs: parameters, metrics, tags,
    states and times, also while they run. What a script logs with MLflow itself is part of the same MLflow run. Serves
    the page of MLflow, which only you can open, and follows unfinished runs until Ctrl-C. Each value is written once,
    however often you repeat the command.

    With --to, sends the runs to your own MLflow server and exits. Its token is the secret MLFLOW_TRACKING_TOKEN, or
    MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, from the environment or from `yurt secret set`.
    """
    from yurt.cli.progress import watching
    from yurt.tracking.mlflow import mlflow as verbs

    app.enable_gc()
    if due:
        verbs.send_due()
        return 0
    if to is not None or no_serve:
        target = to or (verbs.default_uri(app.current().context or "") if to is not None else "")
        with watching() as watch:
            found = verbs.send(runs, to=target, artifacts=artifacts, watch=watch)
        return render.result(found, lambda: _print_sent(found.data, here=not target))

    with watching() as watch:
        verbs.page(
            runs,
            artifacts=artifacts,
            on_ready=lambda ready, folder: _show(ready, folder, no_browser=no_browser),
            on_word=lambda text: print(f"yurt: {render.plain(text)}", file=sys.stderr, flush=True),
            watch=watch,
        )
    return 0


def _print_sent(data: InMlflow, *, here: bool) -> None:
    place = "the MLflow store of this machine" if here else render.plain(data.store)
    added = f", {render.count(data.artifacts, 'artifact')}" if data.artifacts else ""
    if data.changed or added:
        print(f"{render.count(data.changed, 'MLflow run')}{added} written to {place}")
    else:
        print(f"{place} is up to date")


def _show(ready: Result[InMlflow], folder: Path, *, no_browser: bool) -> None:
    url = ready.data.url

    def text() -> None:
        print(url, flush=True)
        if not no_browser:
            print("Press Ctrl-C to stop.", file=sys.stderr, flush=True)

    render.result(ready, text)
    sys.stdout.flush()
    opener = browser(wanted=not no_browser)
    if opener is not None:
        from yurt.pages.browse import browse

        browse(folder, url, opener)
