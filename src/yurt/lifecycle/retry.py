"""retry: submit finished runs again, with the same code, parameters and settings, or new limits or environments."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

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
