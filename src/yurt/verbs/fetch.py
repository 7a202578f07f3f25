"""fetch: what runs wrote comes home; by rsync, or as tar streams where one side has none."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from yurt.errors import NotFoundError, UnreachableError, YurtError
from yurt.lifecycle.files import transfer
from yurt.lifecycle.files.transfer import Fetched, Wanted, shown
from yurt.lifecycle.select import begun, which
from yurt.model.progress import Event, Watch, unwatched
from yurt.sites import connect, folders
from yurt.store import Entry, Store
from yurt.verbs.result import Result

MOST = 5
"""Errors that are told, of runs that could not be fetched."""


def fetch(
    names: Sequence[str],
    *,
    filters: Sequence[str] = (),
    only: Sequence[str] = (),
    everything: bool = False,
    folder: Path | None = None,
    watch: Watch = unwatched,
) -> Result[list[Fetched]]:
    """Bring results of runs here, and of sweeps those of their tasks that have begun; with filters, that pass them.

    Runs that could not be fetched are warnings, and the exit code is theirs; if none could, their error is raised.
    """
    index = folders.store()
    entries, warnings = begun(index, names, filters, watch=watch)
    several = len(entries) > 1 or any(entry.run.tasks for entry in which(index, names))
    wanted = Wanted(only=only, everything=everything, folder=folder, several=several)
    done, errors = fetch_runs(index, entries, wanted, watch=watch)
    messages = _told([error.message for error in errors])
    if errors and not done:
        errors[0].message = "; ".join(messages)
        raise errors[0]
    code = max((error.exit_code for error in errors), default=0)
    return Result(kind="runs-fetched", data=done, warnings=[*warnings, *messages], exit_code=code)


def _told(messages: list[str]) -> list[str]:
    """Those that a person reads."""
    return messages if len(messages) <= MOST else [*messages[:MOST], f"and {len(messages) - MOST} more like these"]


def fetch_runs(
    store: Store, entries: Sequence[Entry], wanted: Wanted, *, watch: Watch = unwatched
) -> tuple[list[Fetched], list[YurtError]]:
    """Bring results of runs here, those of each context in one transfer.

    Returns what came, and the errors of runs of which not all came: what has arrived is kept, repeating goes on.
    """
    by_context: dict[str, list[Entry]] = {}
    for entry in entries:
        by_context.setdefault(entry.run.context, []).append(entry)
    done: list[Fetched] = []
    errors: list[YurtError] = []
    for name, group in by_context.items():
        try:
            watch(Event(f"looking at {name}"))
            files = connect.named_backend(name).files
            errors += [_gone(store, entry) for entry in group if _inside(entry)]
            out = [entry for entry in group if not _inside(entry)]
            if not out:
                continue
            there = files.contents([entry.run.folder for entry in out])
            errors += [_gone(store, entry) for entry in out if entry.run.folder not in there]
            left = [(entry, there[entry.run.folder]) for entry in out if entry.run.folder in there]
            for some in transfer.together(left, wanted):
                try:
                    came, lacking = transfer.Transfer(store, files, some, wanted).run(watch)
                    done += came
                    errors += lacking
                except UnreachableError:
                    raise
                except YurtError as error:
                    errors.append(error)
        except YurtError as error:  # the rest of this site has to wait, others need not
            errors.append(error)
    places = {entry.run.id: at for at, entry in enumerate(entries)}
    return sorted(done, key=lambda each: places[each.id]), errors


def _inside(entry: Entry) -> bool:
    """Whether a run surely has not left this machine, so that no site need be asked."""
    return entry.status.state in ("waiting", "submitting") and entry.status.attempts == 0


def _gone(store: Store, entry: Entry) -> YurtError:
    """Why there is no folder to fetch from."""
    run, status = entry.run, entry.status
    at = store.gone_at(run.id) or store.going_since(run.id)
    copies = [copy for copy in store.copies(run.id) if Path(os.fsdecode(copy.target)).is_dir()]
    if at is not None:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
        why = f"its folder was removed from {run.context} by yurt prune on {when}"
    elif status.submitted is None and status.started is None:
        why = f"it {'never went' if status.final else 'has not gone'} out to {run.context}"
    else:
        why = f"its folder is gone from {run.context}, by a purge or by hand: {run.folder}"
    return NotFoundError(
        f"run {run.id} cannot be fetched: {why}",
        code="not-found",
        hint=f"an earlier copy is in {shown(os.fsdecode(copies[0].target))}" if copies else f"yurt show {run.id}",
    )
