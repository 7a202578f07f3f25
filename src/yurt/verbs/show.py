"""show: the details of one run or sweep."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from yurt.backends.kinds import kind_of
from yurt.config import paths
from yurt.errors import YurtError
from yurt.lifecycle.files import metrics
from yurt.lifecycle.files.metrics import Metric
from yurt.model.pending import Pending
from yurt.model.progress import Watch, unwatched
from yurt.model.race import RaceCandidate
from yurt.model.run import Run
from yurt.model.run_parts import Parts
from yurt.model.status_answer import RunFiles
from yurt.model.usage import Usage
from yurt.model.usage_samples import UsageCurve
from yurt.model.verdict import Verdict, verdict_of
from yurt.store import Entry, Store
from yurt.store.tracked import Tracked
from yurt.verbs import show_here, show_usage, show_why
from yurt.verbs.fresh import is_fresh
from yurt.verbs.result import Result
from yurt.verbs.show_here import Here
from yurt.why.failed import Cause

if TYPE_CHECKING:
    from yurt.lifecycle.tasks import Plotted, SweepShown
    from yurt.model.sweep_table import Column, TaskRow

PATIENCE = 6.0
"""Seconds to wait for a site that is only queried for what is left of a run folder."""

MANY = 500
"""Up to this many tasks are read without a progress bar."""


class LastingCopy(msgspec.Struct, frozen=True, kw_only=True):
    """A copy of results on a lasting tier of their site."""

    tier: str
    """The name of the tier."""
    path: str
    """The folder of the copy on the site."""
    at: float
    """When it was made."""


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """One run: its record, its status and what is left of it. The same on every machine that has the run."""

    run: Run
    status: Verdict
    retried_as: list[str]
    """Retries of this run."""
    on_site: Parts | None
    """What was left in its folder at the last query; None if the run has not finished or was not queried."""
    metrics: list[Metric]
    """The last value of each metric."""
    packages: dict[str, str] = {}
    """The versions of the packages of the environment that yurt built for it, by name."""
    candidates: list[RaceCandidate] = []
    """Of a race: where it was submitted, and how long each one waited."""
    tracked: Tracked | None = None
    """When and where this machine sent it to MLflow, or why not; null without the setting `track`."""
    deleted_at: float | None = None
    """When its site deletes its results, at the earliest, if that is within 14 days, or was, and this machine has no
    record of a copy."""
    cause: Cause | None = None
    """Why it failed, as `yurt why` says, from what this machine has saved of it; null if it did not fail."""
    pending: Pending | None = None
    """What it waits for, as far as this machine knows; `yurt why` also queries the site."""
    usage: Usage | None = None
    """What it used of its resources, so far if it is running; null if that is unknown."""
    usage_curve: UsageCurve | None = None
    """The same over time, with --usage."""
    site_copy: LastingCopy | None = None
    """The copy that `yurt storage keep` made on a lasting tier, according to this machine."""


class ShownRun(Result[Shown], frozen=True, kw_only=True):
    """A run, with what this machine has recorded about it."""

    here: Here


class ShownSweep(Result[Any], frozen=True, kw_only=True):
    """A sweep, with the data for a table or a plot of its tasks."""

    data: SweepShown
    here: Here
    every: list[TaskRow]
    """All its tasks; `data` has only the requested ones."""
    passing: int
    """How many tasks match the filters."""
    columns: list[Column]
    named: set[str]
    """Titles of the columns used to filter or sort."""
    plot: Plotted | None


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """Which tasks of a sweep to show, in what order, and what to plot."""

    sort: str = ""
    filters: Sequence[str] = ()
    limit: int | None = None
    plot: str = ""
    """The metric to plot."""
    over: str = ""
    """The parameter to plot it over; may be empty if only one parameter varies."""


WHOLE = Table()


def show(
    name: str,
    *,
    cached: bool = False,
    table: Table = WHOLE,
    usage: bool = False,
    on_found: Callable[[Run], None] = lambda _run: None,
    watch: Watch = unwatched,
) -> ShownRun | ShownSweep:
    """Return the details of a run or a sweep, after a refresh if it has not finished, unless `cached`.

    `usage`: also of a single run, what it used over time.
    `on_found` is called with the run before its site is queried, and may raise. A site that cannot be queried is a
    warning. NotFoundError: no task of a sweep matches the filters.
    """
    from yurt.lifecycle.select import name_warnings, which

    index = Store(f"{paths.data_folder()}/yurt.db")
    (entry,) = which(index, [name])
    on_found(entry.run)
    warnings = name_warnings(index, [name])
    named = len(warnings)
    unsettled = not entry.status.final or entry.status.state == "lost"
    files: RunFiles | None = None
    if not cached and unsettled and not is_fresh(index, entry.run.context):
        notes, files = _refresh(index, entry, usage=usage)
        warnings += notes
        (entry,) = which(index, [entry.run.id])
    if entry.run.home_sync:
        from yurt.homesync import gate

        entry = msgspec.structs.replace(entry, status=gate.explained(entry.run, entry.status))
    if entry.status.cancel_requested and not entry.status.final:
        entry = msgspec.structs.replace(entry, status=msgspec.structs.replace(entry.status, reason=entry.status.why))
    ask = not cached and len(warnings) == named  # do not query a site again that just failed to respond
    if entry.run.tasks:
        return _sweep(index, entry, table, warnings, watch, ask=ask)
    found = _run(index, entry, warnings, files, inspect=ask)
    if not usage:
        return found
    curve, notes = show_usage.curve(entry, ask=ask)
    data = msgspec.structs.replace(found.data, usage_curve=curve)
    return msgspec.structs.replace(found, data=data, warnings=[*found.warnings, *notes])


def _refresh(index: Store, entry: Entry, *, usage: bool) -> tuple[list[str], RunFiles | None]:
    """Refresh the context of a run. Return warnings, and what a running run has written, if that came with it."""
    from yurt.lifecycle.refresh.unchanged import unchanged

    run, reads = entry.run, entry.status.state == "running" and not entry.run.tasks and not usage
    running = run.folder if reads and not kind_of(run.context_type).here else ""
    seen = unchanged(index, run.context, running) if not entry.status.final else None
    if seen is not None:
        return seen.notes, seen.files
    from yurt.lifecycle.refresh.refresh import refresh_contexts

    done = refresh_contexts(index, [run.context], also=[run.id], verb="show", running=running)
    return done.warnings, done.files


def _sweep(index: Store, entry: Entry, table: Table, warnings: list[str], watch: Watch, *, ask: bool) -> ShownSweep:
    from yurt.lifecycle.select import no_match
    from yurt.lifecycle.tasks import chosen, plotted, shown, sort_column, task_rows
    from yurt.model import sweep_table

    every = task_rows(index, entry, watch=watch if entry.run.tasks > MANY else unwatched)
    columns = sweep_table.columns(every, time.time())
    passing = chosen(every, columns, filters=table.filters, sort=table.sort)
    if table.filters and not passing:
        raise no_match([entry], table.filters)
    drawn = plotted(entry.run.id, passing, columns, table.plot, table.over) if table.plot else None
    named = {sweep_table.column(columns, text.partition("=")[0]).title for text in table.filters}
    if table.sort:
        named.add(sort_column(columns, table.sort).title)
    return ShownSweep(
        kind="sweep-shown",
        data=shown(
            index,
            entry,
            every,
            passing[: table.limit],
            packages=_packages(index, entry.run, ask=ask),
            candidates=_candidates(index, entry.run),
            deleted_at=_deleted_at(index, entry),
        ),
        warnings=warnings,
        here=show_here.here(index, entry),
        every=every,
        passing=len(passing),
        columns=columns,
        named=named,
        plot=drawn,
    )


def _run(store: Store, entry: Entry, warnings: list[str], files: RunFiles | None, *, inspect: bool) -> ShownRun:
    """Return a run. `files`: what it has written, if it is running and that is known.

    `inspect`: query its last metrics if it is running, what is left in its folder if it has finished, and packages that
    are not known.
    """
    run = entry.run.id
    if inspect and entry.status.final:
        from yurt.lifecycle.refresh import archive

        try:
            archive.inspect(store, entry, timeout=PATIENCE)
        except YurtError as error:
            context = entry.run.context
            message = error.message.removeprefix(f"{context}: ")
            warnings = [*warnings, f"cannot query {context}: {message}"]
        entry = store.get(run) or entry
    final = entry.status.final
    seen_at, parts = _known_parts(store, run) if final else (None, None)
    kept = store.kept(run) if final else None
    shown = Shown(
        run=entry.run,
        status=verdict_of(entry.status),
        retried_as=store.retries(run),
        on_site=parts,
        metrics=_metrics(store, entry, ask=inspect) if files is None else metrics.of(files.metrics),
        usage=show_usage.usage(entry, None if files is None else files.usage),
        packages=_packages(store, entry.run, ask=inspect),
        candidates=_candidates(store, entry.run),
        tracked=store.tracked(entry.run.sweep or run),
        deleted_at=None if parts is not None and not parts.there else _deleted_at(store, entry),
        site_copy=_site_copy(store, run) if final else None,
        cause=show_why.cause(store, entry, kept),
        pending=show_why.pending(store, entry),
    )
    here = show_here.here(store, entry, folder_seen_at=seen_at, kept=kept)
    return ShownRun(kind="run-shown", data=shown, warnings=warnings, here=here)


def _known_parts(store: Store, run: str) -> tuple[float | None, Parts | None]:
    """Return when a run's folder was last measured, and the result."""
    row = store.parts(run)
    return (None, None) if row is None else (row[0], msgspec.json.decode(row[1], type=Parts))


def _site_copy(store: Store, run: str) -> LastingCopy | None:
    copy = store.site_copy(run)
    return None if copy is None else LastingCopy(tier=copy.tier, path=copy.path, at=copy.at)


def _deleted_at(store: Store, entry: Entry) -> float | None:
    """Return when the site deletes the results of a finished run that are nowhere else; None if not soon."""
    if not entry.status.final:
        return None
    from yurt.storage.purge_rules import purge_rules

    rules = purge_rules(store)
    if not rules:
        return None
    from yurt.storage.purge_dates import expiry

    return expiry(store, [entry], rules, time.time()).get(entry.run.id)


def _metrics(store: Store, entry: Entry, *, ask: bool) -> list[Metric]:
    if entry.status.state != "running" or not ask:
        return metrics.last(store, entry) or metrics.of(msgspec.json.encode(entry.status.metrics))
    from yurt.tracking.last import last

    return last(store, entry, patience=PATIENCE)


def _candidates(store: Store, run: Run) -> list[RaceCandidate]:
    if not run.race or run.race != run.id:
        return []
    from yurt.lifecycle.race.view import candidates

    return candidates(store, run.id)


def _packages(store: Store, run: Run, *, ask: bool) -> dict[str, str]:
    if run.env is None:
        return {}
    from yurt.lifecycle.env.packages import packages_of

    return packages_of(store, run, ask=ask)


def sweep_parameters(name: str = "") -> list[str]:
    """Return the parameters of a sweep, or of the newest sweep, from the index. NotFoundError if there is none."""
    from yurt.lifecycle.select import LAST_SWEEP, which

    index = Store(f"{paths.data_folder()}/yurt.db")
    (entry,) = which(index, [name or LAST_SWEEP])
    plan = index.plan(entry.run.id)
    return list(dict.fromkeys(key for each in (plan.sets if plan is not None else ()) for key in each))
