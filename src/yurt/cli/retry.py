"""`yurt retry RUN…`: run finished runs again."""

from __future__ import annotations

from typing import Any

import click

from yurt.cli import app, render
from yurt.cli.app import run_names, verb
from yurt.cli.filters import FILTER
from yurt.errors import UserError

EXAMPLES = [
    "yurt retry -",
    "yurt retry x7q4z --time 4h --mem 16G -f",
    "yurt retry --failed",
    "yurt retry --failed --context alpha --wait",
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
@click.option("--follow", "-f", is_flag=True, help="Follow the output until the runs have finished.")
@click.option("--wait", is_flag=True, help="Wait until the runs have finished.")
@FILTER
def retry(runs: tuple[str, ...], failed: bool, filters: tuple[str, ...], **options: Any) -> int:
    """Run finished runs again.

    Each retry is a new run with the same code, parameters and settings on the same context. --failed selects runs
    that failed, reached a limit or were lost, and have not been retried since; it does not select cancelled runs.
    --filter selects tasks of sweeps and creates one new sweep for each sweep.
    """
    from yurt.cli.progress import watching
    from yurt.cli.send import on_interrupt, submitted_line, wait_or_follow
    from yurt.verbs import retry as verbs

    now = app.current()
    _check(runs, failed, filters)
    anew = verbs.Anew(options["time"], options["mem"])
    with on_interrupt() as on_kept, watching() as watch:
        done = verbs.retry(
            runs, failed=failed, filters=filters, context=now.context, anew=anew, on_kept=on_kept, watch=watch
        )
    sent = done.data
    staying = bool(sent) and (options["follow"] or options["wait"])

    def print_text() -> None:
        for entry in sent:
            print(f"{submitted_line(entry)}; retry of {entry.run.retry_of}")
        if not sent:
            print(f"no failed runs to retry{'' if runs else ' in this project'}")

    if not (staying and now.json):
        render.result(done, print_text)
    code = done.exit_code
    return wait_or_follow(sent, follow=options["follow"], kind="runs-finished") or code if staying else code


def _check(runs: tuple[str, ...], failed: bool, filters: tuple[str, ...]) -> None:
    if filters and not runs:
        hint = f"for example: `yurt retry @last-sweep --filter {filters[0]}`"
        raise UserError("--filter needs a sweep", code="usage", hint=hint)
    if not failed and not runs:
        raise UserError(
            "no runs given", code="usage", hint="retry all failed runs of this project with `yurt retry --failed`"
        )
