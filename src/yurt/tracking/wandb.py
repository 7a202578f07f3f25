"""wandb: upload the offline runs of W&B that runs left on their sites with the user's `wandb sync`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from yurt.config import paths
from yurt.config.lock import locked
from yurt.contexts import connect, folders
from yurt.contexts.project import Project
from yurt.errors import NotFoundError, YurtError
from yurt.lifecycle import select
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.model import ids, layout
from yurt.model.files import NOTHING, Contents, Pick, Pull, total
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result
from yurt.store import Entry, Store
from yurt.tracking import wandb_folders as wandb

REFUSED = 5


class WandbFolder(msgspec.Struct, frozen=True):
    """An offline run of W&B."""

    run: str
    folder: str
    """Its name, such as offline-run-20260101_120000-abcd1234."""
    error: str = ""
    """Why `wandb sync` did not upload it."""


class WandbSynced(msgspec.Struct, frozen=True, kw_only=True):
    """What `wandb sync` has uploaded."""

    synced: list[WandbFolder]
    """What was uploaded now."""
    skipped: int
    """How many folders of these runs were uploaded before."""
    failed: list[WandbFolder]
    """What was not uploaded; the next call tries again."""
    left: int
    """How many folders were not tried, because the first one failed."""
    unfinished: list[str]
    """Runs that are still running: their folders are uploaded when they have finished."""


def sync(
    names: Sequence[str] = (),
    *,
    again: bool = False,
    on_output: Callable[[bytes], None],
    watch: Watch = unwatched,
) -> Result[WandbSynced]:
    """Upload each offline run of W&B of these runs, by default of all runs of the project, once with `wandb sync`.

    `again`: also those that were uploaded. A folder counts as uploaded when wandb says so; a killed call is repeated
    with the folder that was under way. Sites that cannot be reached are warnings. RefusedError: wandb is not installed.
    """
    command = wandb.program()
    index = folders.store()
    with locked(wandb.home() / "ledger"):
        ledger = wandb.Ledger()
        earlier = None if again else ledger
        entries, warnings = _entries(index, names, earlier, watch)
        unfinished = [entry.run.id for entry in entries if not entry.status.final]
        wanted = [entry for entry in entries if entry.status.final and not (earlier and earlier.done(entry.run.id))]
        errors = _fetch(wanted, watch)
        failed = {entry.run.id for error_entries in errors.values() for entry in error_entries}
        ready = {entry.run.id: entry.run.context for entry in wanted if entry.run.id not in failed}
        found = _upload(command, ready, ledger, on_output, watch, again=again)
        before = sum(ledger.count(entry.run.id) for entry in entries if entry not in wanted)
    done = msgspec.structs.replace(found, skipped=found.skipped + before, unfinished=unfinished if names else [])
    # By default, a run of a context that was removed is no failure.
    counted = [error for error in errors if names or not isinstance(error, NotFoundError)]
    code = max([REFUSED if done.failed else 0, *(error.exit_code for error in counted)])
    return Result(
        kind="wandb-synced", data=done, warnings=[*warnings, *(error.message for error in errors)], exit_code=code
    )


def _entries(
    index: Store, names: Sequence[str], earlier: wandb.Ledger | None, watch: Watch
) -> tuple[list[Entry], list[str]]:
    """Return the runs and the tasks that may have folders of W&B, and warnings. Runs in the ledger count if named."""
    if names:
        unfinished = sorted({each.run.context for each in select.which(index, names) if not each.status.final})
        warnings = refresh_contexts(index, unfinished, watch=watch).warnings if unfinished else []
        entries, more = select.begun(index, names, watch=watch)
        return entries, [*warnings, *more]
    project = {"project": [Project().label]}
    unfinished = sorted({entry.run.context for entry in index.newest(where=project, unfinished=True)})
    warnings = refresh_contexts(index, unfinished, watch=watch).warnings if unfinished else []
    every = (entry for entry in index.newest(where=project) if entry.run.folder)
    runs = [entry for entry in every if not (earlier and earlier.done(entry.run.id))]
    found: list[Entry] = []
    for entry in reversed(runs):
        if not entry.run.tasks:
            found.append(entry)
            continue
        started = sorted(number for number, status in index.tasks(entry.run.id).items() if status.started)
        found += index.several([ids.task(entry.run.id, number) for number in started])
    return [entry for entry in found if index.gone_at(entry.run.id) is None], warnings


def _fetch(entries: Sequence[Entry], watch: Watch) -> dict[YurtError, list[Entry]]:
    """Fetch the folders of W&B of runs. Return what failed, and of which runs."""
    failed: dict[YurtError, list[Entry]] = {}
    by_context: dict[str, list[Entry]] = {}
    for entry in entries:
        by_context.setdefault(entry.run.context, []).append(entry)
    for context, group in by_context.items():
        watch(Event(f"querying {context}"))
        try:
            files = connect.responding_backend(context).files
            contents = files.contents([entry.run.folder for entry in group])
        except YurtError as error:
            failed[error] = group
            continue
        for some in _by_project(group, contents):
            pulls = [_pull(entry, contents[entry.run.folder]) for entry in some]
            target = wandb.copies("") if len(pulls) > 1 else wandb.copies(pulls[0].name)
            paths.make_private(target)
            try:
                watch(Event(f"fetching from {context}"))
                files.pull(pulls, target, Pick(wandb.FILES), lambda _size, _total: None, everything=False)
            except YurtError as error:
                failed[error] = list(some)
    return failed


def _by_project(group: Sequence[Entry], contents: dict[str, Contents]) -> Iterator[list[Entry]]:
    """Yield the runs that can be fetched in one transfer; those that wrote nothing are left out."""
    together: dict[str, list[Entry]] = {}
    for entry in group:
        found = contents.get(entry.run.folder)
        if found is not None and (found.measures.outputs != NOTHING or found.measures.work != NOTHING):
            together.setdefault(layout.project_of(entry.run.folder), []).append(entry)
    yield from together.values()


def _pull(entry: Entry, contents: Contents) -> Pull:
    measures = contents.measures
    having = {"outputs": measures.outputs != NOTHING, "work": measures.work != NOTHING}
    return Pull(entry.run.folder, entry.run.id, size=total(measures), **having)


def _upload(
    command: list[str],
    runs: Mapping[str, str],
    ledger: wandb.Ledger,
    on_output: Callable[[bytes], None],
    watch: Watch,
    *,
    again: bool,
) -> WandbSynced:
    """Upload the folders of runs, each with its context. If the very first one fails, the others are not tried."""
    env = wandb.environment()
    synced: list[WandbFolder] = []
    failed: list[WandbFolder] = []
    skipped = left = 0
    for run, context in runs.items():
        complete, from_site = True, not connect.is_here(context)
        for folder in wandb.folders(run):
            if ledger.has(run, folder.name) and not again:
                skipped += 1
                continue
            if failed and not synced:
                left, complete = left + 1, False
                continue
            watch(Event(f"wandb sync {folder.name}"))
            if again:
                wandb.forget_uploads(folder)
            error = wandb.upload(command, folder, env, on_output, from_site=from_site)
            if error:
                failed.append(WandbFolder(run, folder.name, error))
                complete = False
            else:
                ledger.add(run, folder.name)
                synced.append(WandbFolder(run, folder.name))
        if complete:
            ledger.add(run)
            wandb.forget(run)
    return WandbSynced(synced=synced, skipped=skipped, failed=failed, left=left, unfinished=[])
