"""retry: submit finished runs again, with the same code, parameters and settings, or new limits or environments."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from yurt.cli import call, completers, render, values
from yurt.cli.ask import confirm
from yurt.cli.completers import run_names
from yurt.cli.declare import ONLY_CONTEXT, argument, option, verb
from yurt.cli.filters import FILTER
from yurt.cli.listing import listing
from yurt.config import contexts
from yurt.contexts import folders
from yurt.contexts.project import Project
from yurt.errors import RefusedError, UserError, YurtError
from yurt.lifecycle.plan.request import Planned
from yurt.lifecycle.retry_plan import UNCHANGED, Anew, check_finished, plan
from yurt.lifecycle.retry_select import failed_runs, refresh_unfinished, unfinished, wanted
from yurt.model.progress import Watch, unwatched
from yurt.model.result import Result
from yurt.store import Entry, Store

if TYPE_CHECKING:
    from yurt.store import Entry


def retry(
    names: Sequence[str] = (),
    *,
    failed: bool = False,
    filters: Sequence[str] = (),
    context: str = "",
    anew: Anew = UNCHANGED,
    on_kept: Callable[[str], None] = lambda _run: None,
    on_held: Callable[[Entry], None] = lambda _entry: None,
    watch: Watch = unwatched,
) -> Result[list[Entry]]:
    """Submit finished runs again: those named, or the failed runs of this project; with filters, the matching tasks.

    Nothing is submitted unless all of them can be planned. Runs that their site rejects are warnings; if it rejects all
    of them, the first error is raised.
    """
    from yurt.lifecycle.outbox.enqueue import enqueue

    index = folders.store()
    chosen, warnings = _select(index, names, failed=failed, filters=filters, context=context, watch=watch)
    races = [_race(index, entry, anew, tasks, watch) for entry, tasks in chosen if entry.run.race]
    chosen = [(entry, tasks) for entry, tasks in chosen if not entry.run.race]
    plans = [plan(index, entry, anew, tasks=tasks, watch=watch) for entry, tasks in chosen]
    warnings += dict.fromkeys(warning for planned in plans for warning in planned.warnings)
    submitted: list[Entry] = []
    refused: list[YurtError] = []
    for candidates in races:
        from yurt.lifecycle.races.submit import submit

        places = [contexts.site(each.plan.run.context) for each in candidates]
        raced, messages = submit(index, places, candidates, None, on_kept=on_kept, watch=watch)
        submitted.append(raced)
        warnings += messages
    for planned in plans:
        run = planned.plan.run
        on_kept(run.id)
        try:
            quiet = msgspec.structs.replace(planned, warnings=[])
            entry, messages = enqueue(index, contexts.site(run.context), quiet, watch=watch)
            submitted.append(entry)
            warnings += messages
        except RefusedError as error:  # the site may accept the others
            refused.append(error)
            warnings.append(f"could not retry run {run.retry_of}: {error.message}")
    if refused and not submitted:
        raise refused[0]
    if any(entry.run.home_sync for entry in submitted):
        from yurt.lifecycle.syncing import sync_first

        submitted, notes = sync_first(index, submitted, on_held=on_held, watch=watch)
        warnings += notes
    from yurt.lifecycle.advice import advice

    warnings += dict.fromkeys(each for entry in submitted for each in advice(index, entry.run))
    code = refused[0].exit_code if refused else 0
    return Result(kind="runs-retried", data=submitted, warnings=warnings, exit_code=code)


def _race(index: Store, entry: Entry, anew: Anew, tasks: list[int] | None, watch: Watch) -> list[Planned]:
    """Plan the retry of a race for all its candidates."""
    from yurt.lifecycle.race import retry_plans

    def one(member: Entry, numbers: Sequence[int] | None) -> Planned:
        return plan(index, member, anew, tasks=numbers, candidate=True, watch=watch)

    check_finished(index, entry, tasks)
    return retry_plans(index, entry, tasks, one)


class RetryCandidate(msgspec.Struct, frozen=True):
    """A run that `retry` would submit again."""

    id: str
    name: str
    context: str
    state: str
    created: float
    command: list[str]
    tasks: int | None = None
    """How many tasks of a sweep; None for a run that is not a sweep."""


def candidates(
    names: Sequence[str] = (),
    *,
    failed: bool = False,
    filters: Sequence[str] = (),
    context: str = "",
    watch: Watch = unwatched,
) -> Result[list[RetryCandidate]]:
    """Return the runs that `retry` would submit again, oldest first. Submits nothing."""
    index = folders.store()
    chosen, warnings = _select(index, names, failed=failed, filters=filters, context=context, watch=watch)
    found = [
        RetryCandidate(
            entry.run.id,
            entry.run.name,
            entry.run.context,
            entry.status.state,
            entry.run.created,
            entry.run.command,
            (entry.run.tasks if tasks is None else len(tasks)) if entry.run.tasks else None,
        )
        for entry, tasks in chosen
    ]
    return Result(kind="retry-candidates", data=found, warnings=warnings)


def _select(
    index: Store, names: Sequence[str], *, failed: bool, filters: Sequence[str], context: str, watch: Watch
) -> tuple[list[tuple[Entry, list[int] | None]], list[str]]:
    """Return the runs to retry, each with the tasks to retry, and warnings."""
    from yurt.lifecycle.select import check, picked, which

    project = Project().label
    known = which(index, names) if names else unfinished(index, project, context)
    if filters:
        check(known)
    warnings = refresh_unfinished(index, known, watch=watch)
    entries = which(index, [entry.run.id for entry in known]) if names else failed_runs(index, project, context)
    for entry in entries:
        if context not in ("", entry.run.context):
            raise UserError(
                f"run {entry.run.id} ran on {entry.run.context}; a retry uses the same context",
                code="usage",
                hint=f"run `yurt retry {entry.run.id}` without `--context`",
            )
    picks = {entry.run.id: tasks for entry, tasks in picked(index, entries, filters)} if filters else None
    return list(wanted(index, entries, failed=failed, picks=picks)), warnings


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


@verb(examples=EXAMPLES, context_help=ONLY_CONTEXT)
@argument("runs", nargs=-1, metavar="[RUN]...", shell_complete=run_names)
@option(
    "--failed",
    is_flag=True,
    help="Retry only the failed runs among RUN, or all failed runs of this project if no RUN is given.",
)
@option("--time", metavar="TIME", help="New time limit: 90m, 2h, 1-12:00:00.")
@option("--mem", metavar="SIZE", help="New amount of memory: 4096 (MB), 8G.")
@option("--gpus", metavar="[TYPE:]N", help="New number of GPUs, optionally of a type: 1, a100:2.")
@option("--exclude-node", "-x", metavar="NODES", default="", help="More nodes that the retry must not use: n7, n[1-3].")
@option(
    "--venv",
    metavar="DIR",
    shell_complete=completers.folders,
    help="Activate this virtual environment instead of the old virtual or conda environment.",
)
@option(
    "--conda", metavar="NAME", help="Activate this conda environment instead of the old virtual or conda environment."
)
@option(
    "--container",
    metavar="IMAGE",
    shell_complete=completers.files,
    help="Run in this container image instead of the old one.",
)
@option(
    "--code",
    metavar="WHICH",
    type=values.Choice(["same", "now"]),
    default="same",
    help="Code of the retry: same as the old run (default), or now, a new snapshot of the project.",
)
@option(
    "--secret", metavar="NAME", multiple=True, help="Send this secret of an imported run to its site again; repeatable."
)
@option("--yes", is_flag=True, help="With --failed and no RUN, do not ask for confirmation.")
@option("--dry-run", is_flag=True, help="List the runs that would be retried, and submit nothing.")
@option("--follow", "-f", is_flag=True, help="Follow the output until the runs have finished.")
@option("--wait", is_flag=True, help="Wait until the runs have finished.")
@FILTER
def retry_command(runs: tuple[str, ...], failed: bool, filters: tuple[str, ...], **options: Any) -> int:
    """Run finished runs again.

    Each retry is a new run with the same code, parameters and settings on the same context. With --code now, it uses
    the files of the project as they are now, without --include and --exclude of the old run. An empty --venv, --conda
    or --container removes that of the old run. --failed selects runs that failed, reached a limit or were lost, and
    have not been retried since; it does not select cancelled runs. Without RUN, it lists these runs and asks for
    confirmation. --filter selects tasks of sweeps and creates one new sweep for each sweep.
    """
    from yurt.cli.progress import watching
    from yurt.lifecycle.retry_plan import Anew
    from yurt.lifecycle.submitted_text import after_sync, on_interrupt, submitted_line, wait_or_follow

    now = call.current()
    _check(runs, failed, filters, options)
    changes = {key: options[key] for key in ("time", "mem", "gpus", "exclude_node", "venv", "conda", "container")}
    anew = Anew(**changes, code_now=options["code"] == "now", secrets=options["secret"])
    select: dict[str, Any] = {"failed": failed, "filters": filters, "context": now.context}
    if options["dry_run"] or not (runs or options["yes"]):
        with watching() as watch:
            found = candidates(runs, **select, watch=watch)
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
        done = retry(runs, **select, anew=anew, on_kept=sending.on_kept, on_held=sending.on_held, watch=watch)
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
    if call.current().json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    _print(found)
    if not confirm(f"retry {render.count(len(found), 'run')}?", default=False):
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
