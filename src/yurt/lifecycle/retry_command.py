"""`yurt retry RUN…`: run finished runs again."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from yurt.cli import app, completers, render
from yurt.cli.app import run_names, verb
from yurt.cli.filters import FILTER
from yurt.cli.listing import listing
from yurt.errors import UserError

if TYPE_CHECKING:
    from yurt.lifecycle.retry import RetryCandidate
    from yurt.store import Entry

EXAMPLES = [
    "yurt retry -",
    "yurt retry x7q4z --time 4h --mem 16G -f",
    "yurt retry x7q4z --exclude-node n3",
    "yurt retry --code now x7q4z",
    "yurt retry x7q4z --venv '~/venvs/torch'",
    "yurt retry --failed",
    "yurt retry --failed --yes --context alpha --wait",
    "yurt retry @last-sweep --filter lr=0.1 --filter state=failed",
]


@verb(examples=EXAMPLES, context_help=app.ONLY_CONTEXT)
@click.argument("runs", nargs=-1, metavar="[RUN]...", shell_complete=run_names)
@click.option(
    "--failed",
    is_flag=True,
    help="Retry only the failed runs among RUN, or all failed runs of this project if no RUN is given.",
)
@click.option("--time", metavar="TIME", help="New time limit: 90m, 2h, 1-12:00:00.")
@click.option("--mem", metavar="SIZE", help="New amount of memory: 4096 (MB), 8G.")
@click.option("--gpus", metavar="[TYPE:]N", help="New number of GPUs, optionally of a type: 1, a100:2.")
@click.option(
    "--exclude-node", "-x", metavar="NODES", default="", help="More nodes that the retry must not use: n7, n[1-3]."
)
@click.option(
    "--venv",
    metavar="DIR",
    shell_complete=completers.folders,
    help="Activate this virtual environment instead of the old virtual or conda environment.",
)
@click.option(
    "--conda", metavar="NAME", help="Activate this conda environment instead of the old virtual or conda environment."
)
@click.option(
    "--container",
    metavar="IMAGE",
    shell_complete=completers.files,
    help="Run in this container image instead of the old one.",
)
@click.option(
    "--code",
    metavar="WHICH",
    type=click.Choice(["same", "now"]),
    default="same",
    help="Code of the retry: same as the old run (default), or now, a new snapshot of the project.",
)
@click.option(
    "--secret", metavar="NAME", multiple=True, help="Send this secret of an imported run to its site again; repeatable."
)
@click.option("--yes", is_flag=True, help="With --failed and no RUN, do not ask for confirmation.")
@click.option("--dry-run", is_flag=True, help="List the runs that would be retried, and submit nothing.")
@click.option("--follow", "-f", is_flag=True, help="Follow the output until the runs have finished.")
@click.option("--wait", is_flag=True, help="Wait until the runs have finished.")
@FILTER
def retry(runs: tuple[str, ...], failed: bool, filters: tuple[str, ...], **options: Any) -> int:
    """Run finished runs again.

    Each retry is a new run with the same code, parameters and settings on the same context. With --code now, it uses
    the files of the project as they are now, without --include and --exclude of the old run. An empty --venv, --conda
    or --container removes that of the old run. --failed selects runs that failed, reached a limit or were lost, and
    have not been retried since; it does not select cancelled runs. Without RUN, it lists these runs and asks for
    confirmation. --filter selects tasks of sweeps and creates one new sweep for each sweep.
    """
    from yurt.cli.progress import watching
    from yurt.lifecycle import retry as verbs
    from yurt.lifecycle.retry_plan import Anew
    from yurt.lifecycle.submitted_text import after_sync, on_interrupt, submitted_line, wait_or_follow

    now = app.current()
    _check(runs, failed, filters, options)
    changes = {key: options[key] for key in ("time", "mem", "gpus", "exclude_node", "venv", "conda", "container")}
    anew = Anew(**changes, code_now=options["code"] == "now", secrets=options["secret"])
    select: dict[str, Any] = {"failed": failed, "filters": filters, "context": now.context}
    if options["dry_run"] or not (runs or options["yes"]):
        with watching() as watch:
            found = verbs.candidates(runs, **select, watch=watch)
        if options["dry_run"]:
            return render.result(found, lambda: _print(found.data), requested=True)
        if found.data and not _agreed(found.data):
            now.warnings.append("nothing was submitted; run the command again with `--yes` to retry the runs")
            render.result(found, lambda: _print(found.data), requested=True)
            return 2
        if found.data:
            runs = tuple(each.id for each in found.data)

    def line(entry: Entry) -> str:
        return f"{submitted_line(entry)}; retry of {entry.run.retry_of}"

    with on_interrupt(line) as sending, watching() as watch:
        done = verbs.retry(runs, **select, anew=anew, on_kept=sending.on_kept, on_held=sending.on_held, watch=watch)
    sent = done.data
    staying = bool(sent) and (options["follow"] or options["wait"])

    def print_text() -> None:
        for entry in sent:
            print(after_sync(entry) if entry.run.id in sending.held else line(entry))
        if not sent:
            print(f"no failed runs to retry{'' if runs else ' in this project'}")

    if staying and now.json:
        now.warnings += done.warnings
    else:
        render.result(done, print_text)
    code = done.exit_code
    return wait_or_follow(sent, follow=options["follow"], kind="runs-finished") or code if staying else code


def _agreed(found: Sequence[RetryCandidate]) -> bool:
    """Return whether the user agrees on a terminal; False without one. Abort if the answer is no."""
    if app.current().json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    _print(found)
    if not click.confirm(f"retry {render.count(len(found), 'run')}?", default=False, err=True):
        raise click.Abort
    return True


def _print(found: Sequence[RetryCandidate]) -> None:
    if not found:
        print("no runs to retry", file=sys.stderr)
        return
    now = time.time()
    rows = [
        [
            each.id,
            each.context,
            each.state,
            "" if each.tasks is None else str(each.tasks),
            render.span(now - each.created),
            each.name or render.command_line(each.command),
        ]
        for each in found
    ]
    columns = ["run", "context", "state", "tasks", "age", "command"]
    listing(columns, rows, styles=[""] * len(rows), styled="", shrinks=["command"], numbers=["tasks"])


def _check(runs: tuple[str, ...], failed: bool, filters: tuple[str, ...], options: dict[str, Any]) -> None:
    if options["dry_run"] and options["yes"]:
        raise UserError("--dry-run and --yes cannot be combined", code="usage", hint="leave out `--yes`")
    if filters and not runs:
        hint = f"for example: `yurt retry @last-sweep --filter {filters[0]}`"
        raise UserError("--filter needs a sweep", code="usage", hint=hint)
    if not failed and not runs:
        raise UserError(
            "no runs given", code="usage", hint="retry all failed runs of this project with `yurt retry --failed`"
        )
