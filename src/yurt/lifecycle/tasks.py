"""Data for the display of a sweep: its status, and a table of its tasks."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from yurt.errors import UserError, one_of
from yurt.lifecycle.files import metrics
from yurt.lifecycle.filters import meant_by, pair
from yurt.model import ids, layout, params, plot, sweep_table, tasks
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.race import RaceCandidate
from yurt.model.run import FINAL, Run, Status
from yurt.model.sweep_table import Column, TaskRow
from yurt.model.tally import BAD
from yurt.model.usage import TasksUsage, tasks_usage
from yurt.model.verdict import Verdict, verdict_of
from yurt.store import Entry, Store
from yurt.store.tracked import Tracked


class FailureCount(msgspec.Struct, frozen=True, kw_only=True):
    """Failed tasks of a sweep with the same cause."""

    why: str
    """The cause in the words of `yurt why`, or the reason."""
    count: int
    """How many tasks."""
    tasks: str
    """Their numbers, as ranges."""


class SweepShown(msgspec.Struct, frozen=True, kw_only=True):
    """One sweep: its request, its status, and its tasks."""

    run: Run
    status: Verdict
    """Status of the sweep; `started` is when its first task started, `ended` when its last task finished."""
    task_states: dict[str, int]
    """Number of tasks by state."""
    retried_as: list[str]
    """Runs created from it by `retry`."""
    rows: list[TaskRow]
    """The requested tasks, in the requested order."""
    failures: list[FailureCount] = []
    """Its failed tasks by cause, the most frequent first; `yurt why` shows an example of each."""
    packages: dict[str, str] = {}
    """The versions of the packages of the environment that yurt built for it, by name."""
    candidates: list[RaceCandidate] = []
    """Of a race: where it was submitted, and how many tasks each one won."""
    tracked: Tracked | None = None
    """When and where this machine sent it to MLflow, or why not; null without the setting `track`."""
    deleted_at: float | None = None
    """When its site deletes its results, at the earliest, if that is within 14 days, or was, and this machine has no
    record of a copy."""
    usage: TasksUsage | None = None
    """What its tasks used; null if that is unknown."""


class Plotted(msgspec.Struct, frozen=True, kw_only=True):
    """Data of a plot: one column over another."""

    metric: str
    over: str
    points: list[plot.Point]
    without: int
    """Number of tasks without these values."""


def shown(
    store: Store,
    entry: Entry,
    every: Sequence[TaskRow],
    rows: Sequence[TaskRow],
    *,
    packages: dict[str, str],
    candidates: Sequence[RaceCandidate],
    deleted_at: float | None = None,
) -> SweepShown:
    """Return a sweep with some of its tasks in `rows`; `every` contains all of them."""
    started = min((row.started for row in every if row.started is not None), default=None)
    ended = max((row.ended for row in every if row.ended is not None), default=None) if entry.status.final else None
    return SweepShown(
        run=entry.run,
        status=msgspec.structs.replace(verdict_of(entry.status), started=started, ended=ended),
        task_states=entry.status.task_states or {entry.status.state: entry.run.tasks},
        retried_as=store.retries(entry.run.id),
        rows=list(rows),
        failures=failures(every),
        packages=packages,
        candidates=list(candidates),
        tracked=store.tracked(entry.run.id),
        deleted_at=deleted_at,
        usage=tasks_usage([row.usage for row in every if row.usage is not None]),
    )


def failures(every: Sequence[TaskRow]) -> list[FailureCount]:
    """Return the failed tasks by cause, the most frequent first."""
    found: dict[str, list[int]] = {}
    for row in every:
        if row.state in BAD:
            found.setdefault(row.reason or row.state, []).append(row.task)
    counts = [FailureCount(why=why, count=len(numbers), tasks=tasks.ranges(numbers)) for why, numbers in found.items()]
    return sorted(counts, key=lambda each: -each.count)


def task_rows(store: Store, entry: Entry, *, watch: Watch = unwatched) -> list[TaskRow]:
    """Return every task of a sweep, by number. No site is queried."""
    run, plan = entry.run, store.plan(entry.run.id)
    watch(Event(f"reading metrics of {run.tasks} tasks"))
    known = store.tasks(run.id)
    out = set(tasks.numbers(entry.status.submitted_tasks))
    found = []
    for number in range(run.tasks):
        name = ids.task(run.id, number)
        status = known.get(number) or _default_status(entry.status, out=number in out)
        row = TaskRow(
            id=name,
            task=number,
            state=status.state,
            reason=status.why,
            started=status.started,
            ended=status.ended,
            seconds=status.seconds,
            exit_code=status.exit_code,
            params={**run.params, **(plan.sets[number] if plan is not None and number < len(plan.sets) else {})},
            metrics={},
            usage=status.usage,
        )
        if number in known:
            task = Entry(msgspec.structs.replace(run, id=name, folder=layout.task(run.folder, number)), status)
            # A status query returns the last logged line; the complete file is saved after the task finishes.
            logged = metrics.last(store, task) or metrics.of(msgspec.json.encode(status.metrics))
            row.metrics.update((each.name, each.value) for each in logged)
        found.append(row)
    return found


def _default_status(whole: Status, *, out: bool) -> Status:
    """Return the status of a task without a row in the index."""
    if out:
        return Status(state="held" if whole.held else "queued", reason=whole.held)
    return Status(state=whole.state if whole.state in FINAL else "waiting")


def chosen(every: Sequence[TaskRow], columns: Sequence[Column], *, filters: Sequence[str], sort: str) -> list[TaskRow]:
    """Return the sorted tasks that pass all filters KEY=VALUE (for one key, any of them). UserError if invalid."""
    wanted = []
    for text in filters:
        key, value = pair(text, example="state=failed")
        wanted += [(named("--filter", columns, key), each) for each in meant_by(key, value)]
    found = sweep_table.passing(every, wanted)
    if not sort:
        return found
    return sweep_table.ordered(found, sort_column(columns, sort), descending=_descends(columns, sort))


def sort_column(columns: Sequence[Column], sort: str) -> Column:
    return named("--sort", columns, sort[1:] if _descends(columns, sort) else sort)


def _descends(columns: Sequence[Column], sort: str) -> bool:
    """Return whether a leading - means descending order and is not part of a column name."""
    return sort.startswith("-") and all(each.title != sort for each in columns)


def named(option: str, columns: Sequence[Column], key: str) -> Column:
    """Return the column with this name. UserError if there is none."""
    try:
        return sweep_table.column(columns, key)
    except LookupError:
        from difflib import get_close_matches

        titles = [each.title for each in columns]
        near = get_close_matches(key, titles, n=1)
        text = f"{option}: unknown column '{params.shown(key)}'" + (f"; did you mean '{near[0]}'?" if near else "")
        raise UserError(text, code="usage", hint=f"use {one_of(titles)}") from None


def plotted(sweep: str, rows: Sequence[TaskRow], columns: Sequence[Column], metric: str, over: str) -> Plotted:
    """Return the points of a plot. `over` defaults to the only parameter that varies. UserError if there are none."""
    y = named("--plot", columns, metric)
    if over:
        x = named("--over", columns, over)
    else:
        same = sweep_table.constant(rows)
        vary = [each for each in columns if each.part == "params" and sweep_table.bare(each) not in same]
        if len(vary) != 1:
            several = ", ".join(each.title for each in vary) or "none"
            first = (vary or [columns[0]])[0].title
            hint = f"for example: `yurt show {sweep} --plot {metric} --over {first}`"
            raise UserError(f"--plot needs --over PARAMETER; varying parameters: {several}", code="usage", hint=hint)
        (x,) = vary
    points = plot.gathered((x.of(row), y.of(row)) for row in rows)
    if not points:
        raise UserError(
            f"--plot: no task has both a number for '{y.title}' and a value for '{x.title}'",
            code="usage",
            hint=f"list the values with `yurt show {sweep}`",
        )
    drawn = sum(len(point.values) for point in points)
    return Plotted(metric=y.title, over=x.title, points=points, without=len(rows) - drawn)
