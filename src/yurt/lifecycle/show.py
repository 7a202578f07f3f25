"""show: the details of one run or sweep."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from yurt.backends.kinds import kind_of
from yurt.cli import call, completers, render
from yurt.cli.completers import run_names
from yurt.cli.declare import argument, option, verb
from yurt.cli.filters import FILTER
from yurt.cli.run_facts import head, print_facts, print_parts, settings, took
from yurt.cli.values import Number
from yurt.config import paths
from yurt.errors import YurtError
from yurt.lifecycle import show_here, show_usage, show_why
from yurt.lifecycle.causes.failed import Cause
from yurt.lifecycle.files import metrics
from yurt.lifecycle.files.metrics import Metric
from yurt.lifecycle.fresh import is_fresh
from yurt.lifecycle.show_here import Here
from yurt.model import layout
from yurt.model.pending import Pending
from yurt.model.progress import Watch, unwatched
from yurt.model.race import RaceCandidate
from yurt.model.result import Result
from yurt.model.run import Run
from yurt.model.run_parts import Parts
from yurt.model.status_answer import RunFiles
from yurt.model.usage import Usage
from yurt.model.usage_samples import UsageCurve
from yurt.model.verdict import Verdict, verdict_of
from yurt.store import Entry, Store
from yurt.store.tracked import Tracked

if TYPE_CHECKING:
    from yurt.lifecycle.tasks import Plotted, SweepShown
    from yurt.model.run import Run
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
        from yurt.homes import gate

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
    from yurt.lifecycle.races.view import candidates

    return candidates(store, run.id)


def _packages(store: Store, run: Run, *, ask: bool) -> dict[str, str]:
    if run.env is None:
        return {}
    from yurt.envs.of_runs.packages import packages_of

    return packages_of(store, run, ask=ask)


def sweep_parameters(name: str = "") -> list[str]:
    """Return the parameters of a sweep, or of the newest sweep, from the index. NotFoundError if there is none."""
    from yurt.lifecycle.select import LAST_SWEEP, which

    index = Store(f"{paths.data_folder()}/yurt.db")
    (entry,) = which(index, [name or LAST_SWEEP])
    plan = index.plan(entry.run.id)
    return list(dict.fromkeys(key for each in (plan.sets if plan is not None else ()) for key in each))


EXAMPLES = [
    "yurt show -",
    "yurt show x7q4z --json",
    "yurt show @last-sweep --sort -accuracy --filter state=completed",
    "yurt show @last-sweep --plot loss --over lr",
    "yurt show @last-sweep --csv > sweep.csv",
    "yurt show @last-sweep.3",
    "yurt show - --usage",
]


@verb(examples=EXAMPLES, context_help="")
@argument("run", metavar="RUN", shell_complete=run_names)
@option("--cached", is_flag=True, help="Show cached data without querying the site.")
@option(
    "--sort",
    metavar="KEY",
    default="",
    shell_complete=completers.columns,
    help="Sort tasks by task, state, took, exit, a parameter or a metric; use -KEY for descending order.",
)
@FILTER
@option("-n", "--limit", metavar="N", type=Number(1), help="Show at most N tasks; 50 on a terminal by default.")
@option("--usage", is_flag=True, help="Plot CPUs, memory and GPUs that a run used over time.")
@option("--csv", "as_csv", is_flag=True, help="Print only the table of tasks, as CSV.")
@option("--plot", metavar="METRIC", default="", help="Plot the last values of a metric.")
@option(
    "--over",
    metavar="PARAMETER",
    default="",
    shell_complete=completers.parameters,
    help="Parameter on the x axis of --plot.",
)
def show_command(run: str, cached: bool, usage: bool, **options: Any) -> None:
    """Show a run in detail.

    Shows its state, its command, each setting with its source and, after the end, its first result files. For a sweep,
    also prints a table of the tasks with their states, parameters and last metrics. Use SWEEP.NUMBER for one task.
    --usage plots what a single run used over time; a finished task keeps only the totals.
    --sort, --filter, --limit, --csv, --plot and --over apply only to sweeps.
    """
    from yurt.cli.progress import watching_late

    table = Table(**{key: value for key, value in options.items() if key != "as_csv"})
    with watching_late() as watch:
        found = show(
            run,
            cached=cached,
            table=table,
            usage=usage,
            on_found=lambda record: _check(record, options, usage=usage),
            watch=watch,
        )
    if isinstance(found, ShownSweep):
        from yurt.lifecycle.show_sweep_text import show_sweep

        show_sweep(found, limit=options["limit"], as_csv=options["as_csv"])
        return
    render.result(found, lambda: _print(found.data, found.here), requested=True)


def _check(run: Run, options: dict[str, Any], *, usage: bool) -> None:
    """Raise UserError if options contradict each other or do not apply to the run."""
    if usage and run.tasks:
        from yurt.errors import UserError

        text = f"--usage is only for single runs and tasks, but {run.id} is a sweep"
        raise UserError(text, code="usage", hint=f"for example: `yurt show {run.id}.0 --usage`")
    if not run.tasks:
        _only_for_sweeps(run.id, options)
    elif any(options[key] for key in ("as_csv", "plot", "over")):
        from yurt.lifecycle.show_sweep_text import check

        check(run.id, options, as_json=call.current().json)


def _only_for_sweeps(run: str, options: dict[str, Any]) -> None:
    names = {"filters": "--filter", "as_csv": "--csv"}
    for key, value in options.items():
        if value:
            from yurt.errors import UserError

            option = names.get(key, f"--{key}")
            text = f"{option} is only for sweeps, but {run} is a single run"
            raise UserError(text, code="usage", hint=f"use `yurt show {run}`")


def _print(found: Any, here: Any) -> None:
    from yurt.cli.usage_text import print_curves, used

    run, status = found.run, found.status
    if found.usage_curve is not None:
        print_curves(run, found.usage_curve)
        return
    facts = [
        *head(found, here),
        ("submitted", render.moment(here.submitted)),
        ("started", render.moment(status.started)),
        ("finished", render.moment(status.ended)),
        ("took", took(status)),
        ("used", used(run, found.usage)),
        ("wrote", _wrote(status)),
        ("exit code", "" if status.exit_code is None else str(status.exit_code)),
        ("restarts", _restarts(run, status)),
        ("refreshed", render.moment(here.refreshed_at)),
        ("on site", _on_site(found.on_site, here)),
        ("in index", _saved(here.kept)),
    ]
    metrics = [(each.name, each.value, f"step {each.step}" * (each.step is not None)) for each in found.metrics]
    print_facts(facts)
    _print_results(found.on_site)
    print_parts(
        metrics=metrics, parameters=[(key, value, "") for key, value in run.params.items()], settings=settings(run)
    )


LISTED = 10
"""Maximum number of result files that are printed."""


def _print_results(parts: Any) -> None:
    """Print the first result files on the site, with their sizes."""
    if parts is None or not parts.files:
        return
    shown = parts.files[:LISTED]
    sizes = [render.amount(each.bytes) for each in shown]
    room = max(map(len, sizes))
    print("\nresults")
    for each, size in zip(shown, sizes, strict=True):
        print(f"  {size:>{room}}  {render.plain(each.path)}")
    counts = [parts.parts[name].files for name in (layout.OUTPUTS, layout.WORK) if name in parts.parts]
    if None in counts:
        print("  and more")
    elif (more := sum(counts) - len(shown)) > 0:
        print(f"  and {more} more")


def _restarts(run: Any, status: Any) -> str:
    limits = [
        f"{run.restart_policy.max_requeues} after the time limit" if run.restart_policy.max_requeues else "",
        f"{run.restart_policy.retries} after a failure" if run.restart_policy.retries else "",
    ]
    allowed = " and ".join(part for part in limits if part)
    if not allowed:
        return str(status.restarts or "")
    return f"{status.restarts} (at most {allowed})"


def _wrote(status: Any) -> str:
    """Return what the run had written when it ended."""
    if status.result_files is None or status.result_bytes is None:
        return ""
    if not status.result_files:  # the bytes are those of empty folders
        return "no files"
    return f"{render.amount(status.result_bytes)} in {render.count(status.result_files, 'file')}"


def _on_site(parts: Any, here: Any) -> str:
    """Return what the run folder on the site contains."""
    if parts is None:
        return ""
    if not parts.there:
        text = "run folder not found"
    else:
        text = (
            ", ".join(f"{name} {_amount(each)}" for name, each in parts.parts.items() if each.files != 0)
            or "no results"
        )
    return text + f" ({render.moment(here.folder_seen_at)})"


def _amount(each: Any) -> str:
    if each.bytes is None:
        return "(large)"
    return render.amount(each.bytes) + (f" in {each.files} files" if each.files > 1 else "")


def _saved(kept: Any) -> str:
    """Return what the index on this machine contains of the output of a run."""
    if kept is None:
        return ""
    files = [
        (layout.OUT_LOG, kept.out, kept.out_size),
        (layout.ERR_LOG, kept.err, kept.err_size),
        (layout.METRICS, kept.metrics, kept.metrics_size),
    ]
    parts = [
        name if len(text) >= size else f"{render.amount(len(text))} of {render.amount(size)} of {name}"
        for name, text, size in files
        if size
    ]
    return ", ".join(parts) or "the record of the run"
