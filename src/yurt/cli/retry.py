"""`yurt retry RUN…`: runs once more."""

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


@verb(examples=EXAMPLES)
@click.argument("runs", nargs=-1, metavar="[RUN...]", shell_complete=run_names)
@click.option("--failed", is_flag=True, help="What failed: of these runs and sweeps, or of this project.")
@click.option("--time", metavar="TIME", help="Another time limit: 90m, 2h, 1-12:00:00.")
@click.option("--mem", metavar="SIZE", help="Another amount of memory: 4096 (MB), 8G.")
@click.option("--follow", "-f", is_flag=True, help="Stay and show what they write, until they have ended.")
@click.option("--wait", is_flag=True, help="Stay until they have ended.")
@FILTER
def retry(runs: tuple[str, ...], failed: bool, filters: tuple[str, ...], **options: Any) -> int:
    """Run ended runs once more: new runs with the same code, parameters and settings, on the same context.

    With --failed those that failed, ran into a limit or were lost, and were not retried since; not those you cancelled;
    --context keeps to one context. With --filter those tasks of sweeps that pass it: of each sweep one new one.
    """
    from yurt.cli.progress import watching
    from yurt.cli.send import keeping, say, stay
    from yurt.verbs import retry as verbs

    now = app.current()
    _check(runs, failed, filters)
    anew = verbs.Anew(options["time"], options["mem"])
    with keeping() as on_kept, watching() as watch:
        done = verbs.retry(
            runs, failed=failed, filters=filters, context=now.context, anew=anew, on_kept=on_kept, watch=watch
        )
    sent = done.data
    staying = bool(sent) and (options["follow"] or options["wait"])

    def for_people() -> None:
        for entry in sent:
            print(f"{say(entry)}; retry of {entry.run.retry_of}")
        if not sent:
            print(f"{'none of these' if runs else 'no run of this project'} failed that was not retried")

    if not (staying and now.json):
        render.result(done, for_people)
    code = done.exit_code
    return stay(sent, follow=options["follow"], kind="runs-ended") or code if staying else code


def _check(runs: tuple[str, ...], failed: bool, filters: tuple[str, ...]) -> None:
    if filters and not runs:
        hint = f"yurt retry @last-sweep --filter {filters[0]}"
        raise UserError("--filter picks tasks of sweeps, and none is named", code="usage", hint=hint)
    if not failed and not runs:
        raise UserError("name the runs, or give --failed", code="usage", hint="yurt retry --failed")
