"""`yurt retry RUN…`: runs once more."""

from __future__ import annotations

from typing import Any

import click

from yurt.cli import app, render
from yurt.cli.app import run_names, verb
from yurt.cli.filters import FILTER
from yurt.errors import RefusedError, UserError, YurtError

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
    from yurt.cli.send import say, send, stay
    from yurt.config import contexts
    from yurt.lifecycle.select import check, picked, which
    from yurt.sites.folders import store
    from yurt.sites.project import Project
    from yurt.verbs import retry as verbs

    now = app.current()
    _check(runs, failed, filters)
    if filters and not runs:
        raise UserError(
            "--filter picks tasks of sweeps; name one", code="usage", hint="yurt retry @last-sweep --filter …"
        )
    index = store()
    label = Project().label
    maybe = which(index, runs) if runs else verbs.unfinished(index, label, now.context)
    if filters:
        check(maybe)
    with watching() as watch:
        now.warnings += verbs.refresh_unfinished(index, maybe, watch=watch)
    ids = [entry.run.id for entry in maybe]
    entries = which(index, ids) if runs else verbs.failed(index, label, now.context)
    for entry in entries:
        if now.context not in ("", entry.run.context):
            raise UserError(
                f"run {entry.run.id} was on {entry.run.context}; a retry stays on its context",
                code="usage",
                hint=f"yurt retry {entry.run.id}",
            )
    sent, refused = [], list[YurtError]()
    with watching() as watch:
        anew = verbs.Anew(options["time"], options["mem"])
        picks = {entry.run.id: tasks for entry, tasks in picked(index, entries, filters)} if filters else None
        plans = []
        for entry, tasks in verbs.wanted(index, entries, failed=failed, picks=picks):
            plans.append(verbs.plan(index, entry, anew, tasks=tasks, watch=watch))
        for planned in plans:
            try:
                sent.append(send(index, contexts.named(planned.plan.run.context), planned, watch))
            except RefusedError as error:  # of one: the others may be well
                refused.append(error)
                now.warnings.append(f"run {planned.plan.run.retry_of} was not retried: {error.message}")
    if refused and not sent:
        now.warnings.clear()
        raise refused[0]
    staying = bool(sent) and (options["follow"] or options["wait"])

    def for_people() -> None:
        for entry in sent:
            print(f"{say(entry)}; retry of {entry.run.retry_of}")
        if not sent:
            print(f"{'none of these' if runs else 'no run of this project'} failed that was not retried")

    if not (staying and now.json):
        render.show("runs-retried", sent, for_people)
    code = refused[0].exit_code if refused else 0
    return stay(index, sent, follow=options["follow"], kind="runs-ended") or code if staying else code


def _check(runs: tuple[str, ...], failed: bool, filters: tuple[str, ...]) -> None:
    if filters and not runs:
        hint = f"yurt retry @last-sweep --filter {filters[0]}"
        raise UserError("--filter picks tasks of sweeps, and none is named", code="usage", hint=hint)
    if not failed and not runs:
        raise UserError("name the runs, or give --failed", code="usage", hint="yurt retry --failed")
