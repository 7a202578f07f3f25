"""show: everything known of one run or sweep; and a plan as one looks at it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from yurt.errors import YurtError
from yurt.lifecycle.files import metrics
from yurt.lifecycle.files.metrics import Metric
from yurt.lifecycle.refresh import archive
from yurt.lifecycle.refresh.archive import Parts
from yurt.model.progress import Watch, unwatched
from yurt.model.run import Run
from yurt.model.verdict import Verdict, verdict_of
from yurt.sites import folders
from yurt.store import Entry, Mirrored, Store
from yurt.verbs.result import Result

if TYPE_CHECKING:
    from yurt.lifecycle.tasks import Plotted, SweepShown
    from yurt.model.sweep_table import Column, TaskRow

PATIENCE = 6.0
"""Seconds to wait for a site that is only asked what is left of a run."""

MANY = 500
"""Tasks that take no longer to read than a progress bar to load."""


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """One run: what was asked for, how it stands, what is left of it. The same on every machine that looks now."""

    run: Run
    status: Verdict
    retried_as: list[str]
    """Runs that were made of it by `retry`."""
    on_site: Parts | None
    """What is left on its site, as last seen; None if it has not ended, or nobody has looked."""
    metrics: list[Metric]
    """The last of each, of a run that has ended."""


class Here(msgspec.Struct, frozen=True, kw_only=True):
    """What only this machine knows of a run."""

    submitted: float | None
    refreshed_at: float | None
    """When its site was last looked at."""
    folder_seen_at: float | None
    """When its folder was."""
    removed_at: float | None
    """When `prune` removed its folder from its site."""
    copies: list[str]
    """Folders that have its results."""
    kept: Mirrored | None


class ShownRun(Result[Shown], frozen=True, kw_only=True):
    """A run, with what only this machine knows of it."""

    here: Here


class ShownSweep(Result[Any], frozen=True, kw_only=True):
    """A sweep, with what a table or a plot of its tasks needs."""

    data: SweepShown
    here: Here
    every: list[TaskRow]
    """All its tasks; the data has those that were asked for."""
    passing: int
    """How many tasks pass the filters."""
    columns: list[Column]
    named: set[str]
    """Titles of the columns that tasks were filtered or sorted by."""
    plot: Plotted | None


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """Which tasks of a sweep are shown, in what order, and what is drawn of them."""

    sort: str = ""
    filters: Sequence[str] = ()
    limit: int | None = None
    plot: str = ""
    """A metric."""
    over: str = ""
    """A parameter; may be empty if only one varies."""


WHOLE = Table()


def show(
    name: str,
    *,
    cached: bool = False,
    table: Table = WHOLE,
    on_found: Callable[[Run], None] = lambda _run: None,
    watch: Watch = unwatched,
) -> ShownRun | ShownSweep:
    """All that is known of a run or a sweep, after asking its site about one that has not ended; unless `cached`.

    `on_found` is told which run it is before a site is asked, and may raise. A site that cannot be asked is a warning.
    """
    from yurt.lifecycle.select import which

    index = folders.store()
    (entry,) = which(index, [name])
    on_found(entry.run)
    warnings: list[str] = []
    if not cached and (not entry.status.final or entry.status.state == "lost"):
        from yurt.lifecycle.refresh.refresh import refresh_contexts

        warnings = refresh_contexts(index, [entry.run.context], also=[entry.run.id]).warnings
        (entry,) = which(index, [entry.run.id])
    if entry.run.tasks:
        return _sweep(index, entry, table, warnings, watch)
    # A site that did not answer just now is not asked once more.
    return _run(index, entry, warnings, ask=not cached and not warnings)


def _sweep(index: Store, entry: Entry, table: Table, warnings: list[str], watch: Watch) -> ShownSweep:
    from yurt.lifecycle.tasks import chosen, plotted, shown, sort_column, task_rows
    from yurt.model import sweep_table

    every = task_rows(index, entry, watch=watch if entry.run.tasks > MANY else unwatched)
    columns = sweep_table.columns(every, time.time())
    passing = chosen(every, columns, filters=table.filters, sort=table.sort)
    drawn = plotted(entry.run.id, passing, columns, table.plot, table.over) if table.plot else None
    named = {sweep_table.column(columns, text.partition("=")[0]).title for text in table.filters}
    if table.sort:
        named.add(sort_column(columns, table.sort).title)
    return ShownSweep(
        kind="sweep-shown",
        data=shown(index, entry, every, passing[: table.limit]),
        warnings=warnings,
        here=_here(index, entry),
        every=every,
        passing=len(passing),
        columns=columns,
        named=named,
        plot=drawn,
    )


def _run(store: Store, entry: Entry, warnings: list[str], *, ask: bool) -> ShownRun:
    """`ask`: look at what is left of an ended one."""
    run = entry.run.id
    if ask and entry.status.final:
        try:
            archive.inspect(store, entry, timeout=PATIENCE)
        except YurtError as error:
            context = entry.run.context
            said = error.message.removeprefix(f"{context}: ")
            warnings = [*warnings, f"could not look at {context}: {said}"]
        entry = store.get(run) or entry
    final = entry.status.final
    seen_at, parts = archive.known_parts(store, run) if final else (None, None)
    kept = store.kept(run) if final else None
    shown = Shown(
        run=entry.run,
        status=verdict_of(entry.status),
        retried_as=store.retries(run),
        on_site=parts,
        metrics=metrics.last(store, entry) if final else [],
    )
    here = _here(store, entry, folder_seen_at=seen_at, kept=kept)
    return ShownRun(kind="run-shown", data=shown, warnings=warnings, here=here)


def _here(store: Store, entry: Entry, *, folder_seen_at: float | None = None, kept: Mirrored | None = None) -> Here:
    """What only this machine knows of a run."""
    run = entry.run.id
    return Here(
        submitted=entry.status.submitted,
        refreshed_at=store.refreshed_at(entry.run.context),
        folder_seen_at=folder_seen_at,
        removed_at=store.gone_at(run),
        copies=[_path(copy.target) for copy in store.copies(run) if Path(os.fsdecode(copy.target)).is_dir()],
        kept=kept,
    )


def _path(path: bytes) -> str:
    return path.decode(errors="backslashreplace")
