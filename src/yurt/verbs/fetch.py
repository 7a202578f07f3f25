"""fetch: what runs wrote comes home; by rsync, or as tar streams where one side has none."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from yurt.backends.shell import scripts
from yurt.config import contexts
from yurt.errors import NotFoundError, UnreachableError, YurtError
from yurt.hosts import Host, host_of
from yurt.hosts.base import refusal
from yurt.model import layout
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.run import Run
from yurt.runs.files import transfer
from yurt.runs.files.transfer import NOTHING, Fetched, There, Wanted, shown
from yurt.store import Entry, Store

PARTS = (layout.OUTPUTS, layout.CHECKPOINTS)


def fetch(
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
            host = host_of(contexts.named(name))
            errors += [_gone(store, entry) for entry in group if _inside(entry)]
            out = [entry for entry in group if not _inside(entry)]
            if not out:
                continue
            has_rsync, there = look(host, [entry.run for entry in out])
            errors += [_gone(store, entry) for entry in out if entry.run.id not in there]
            left = [(entry, there[entry.run.id]) for entry in out if entry.run.id in there]
            for some in transfer.together(left, wanted):
                try:
                    came, lacking = transfer.Transfer(store, host, some, wanted, has_rsync=has_rsync).run(watch)
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


def look(host: Host, runs: Sequence[Run]) -> tuple[bool, dict[str, There]]:
    """Whether a site has rsync, and what it has of runs; those whose folder is gone are left out."""
    folders = "".join(f"{run.folder}\n" for run in runs)
    answer = host.run(scripts.text("measure.sh") + scripts.text("fetch_look.sh"), stdin=folders.encode(), timeout=600)
    if answer.code:
        raise refusal(host.name, "the run folders could not be looked at", answer.errors)
    way, *lines = answer.text.splitlines()
    states, measures = lines[: len(runs)], lines[len(runs) :]
    sizes = {folder: measure for measure, _, folder in (line.partition(" ") for line in measures)}
    there = {
        run.id: There(state == "ended", *(sizes.get(f"{run.folder}/{part}", NOTHING) for part in PARTS))
        for run, state in zip(runs, states, strict=True)
        if state != "gone"
    }
    return way == "rsync", there


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
