"""where: the expected start of a request, or of a run, on every context and partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from yurt.cli import call, render
from yurt.cli.completers import run_names
from yurt.cli.declare import argument, verb
from yurt.cli.settings import options as setting_options
from yurt.config import contexts
from yurt.contexts import folders
from yurt.contexts.project import Project
from yurt.errors import UnreachableError, UserError, YurtError
from yurt.lifecycle.plan.request import Request
from yurt.model import settings
from yurt.model.context import Context
from yurt.model.progress import Watch, unwatched
from yurt.model.result import Result
from yurt.model.run import Resources
from yurt.model.where import MOST, REJECTED, SOON, ExpectedStart, SmallerRequest, TrackRecord
from yurt.store import Entry, Store
from yurt.where import allowed
from yurt.where.everywhere import everywhere, why
from yurt.where.query import order
from yurt.where.wanted import MOVED, Wanted, elsewhere, named_contexts, of_request, of_run

if TYPE_CHECKING:
    from yurt.model.where import ExpectedStart, SmallerRequest, TrackRecord


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """The expected starts of a request."""

    starts: list[ExpectedStart]
    """Earliest first; contexts and partitions that cannot take it last."""
    smaller: list[SmallerRequest] = []
    """Requests for less that would start earlier."""
    records: list[TrackRecord] = []
    """How good the estimates of each context have been."""
    minutes: int | None = None
    """The time limit that was asked for; null for the default of each partition."""
    gpus: int | None = None
    """The number of GPUs per node that was asked for."""
    nodes: str | None = None
    """The number of nodes that was asked for."""
    run: str = ""
    """The run that was asked about."""
    run_seconds: float | None = None
    """If that run is in the queue: how long its scheduler expects it to wait from now."""
    advice: str = ""
    """The command that starts that run earlier elsewhere; empty if there is none."""


def where(
    request: Request | None = None, *, run: str = "", names: Sequence[str] = (), watch: Watch = unwatched
) -> Result[Where]:
    """Query contexts in parallel for the expected start of a request, or of one like an existing run.

    Without `names`, those that the project may use. A site that does not respond is a row, and a warning.
    """
    chosen = allowed.named(named_contexts(names))
    store = folders.store()
    entry, wants = None, dict[str, Wanted]()
    if run:
        entry = _entry(store, run)
        resources = entry.run.resources
        wants = {each.name: _of_run(store, entry, each) for each in chosen}
    else:
        request = request or Request(words=())
        wants = {each.name: of_request(each, request) for each in chosen}
        resources = next(iter(wants.values())).resources if wants else Resources()
    found, failed = everywhere(store, chosen, lambda each: (wants[each.name], ()), Project().label, watch)
    rows = [row for each in found.values() for row in each.rows]
    rows += [
        ExpectedStart(context=name, why_not=why(name, error), unreachable=_silent(error))
        for name, error in failed.items()
    ]
    warnings = [f"cannot query {name}: {why(name, error)}" for name, error in failed.items() if _silent(error)]
    warnings += [
        f"{each.context}: not asked about partition {', '.join(each.unasked)}: a query makes at most {MOST} test"
        " submissions; name one with --partition"
        for each in found.values()
        if each.unasked
    ]
    made = Where(
        starts=sorted(rows, key=order),
        smaller=sorted((each for one in found.values() for each in one.smaller), key=lambda each: each.seconds),
        records=[each.record for each in found.values() if each.record is not None],
        minutes=resources.minutes,
        gpus=resources.gpus,
        nodes=resources.nodes,
    )
    if entry is not None:
        own = found.get(entry.run.context)
        made = _with_run(made, entry, own.pending.get(entry.status.job) if own is not None else None)
    code = (
        UnreachableError.exit_code
        if failed and len(failed) == len(chosen) and all(map(_silent, failed.values()))
        else 0
    )
    return Result(kind="where", data=made, warnings=warnings, exit_code=code)


def _silent(error: YurtError) -> bool:
    return isinstance(error, UnreachableError)


def _entry(store: Store, name: str) -> Entry:
    from yurt.lifecycle.select import which

    (entry,) = which(store, [name])
    return entry


def _of_run(store: Store, entry: Entry, context: Context) -> Wanted:
    run = entry.run
    if context.name == run.context:
        plan = store.plan(run.sweep or run.id)
        if plan is not None:
            return of_run(plan, context)
        moved = msgspec.structs.replace(run.resources, **dict.fromkeys(MOVED))
        return msgspec.structs.replace(of_request(context, elsewhere(moved)), resources=run.resources)
    return of_request(context, elsewhere(run.resources))


def _with_run(made: Where, entry: Entry, seconds: float | None) -> Where:
    """Add what concerns the run: its own expected start, and how to start it earlier."""
    run, status = entry.run, entry.status
    clusters = [row for row in made.starts if row.partition or row.context == run.context]  # not this machine
    best = next((row for row in clusters if row.possible and row.seconds is not None), None)
    advice = ""
    waits = status.state in ("queued", "held", "waiting", "requeued")
    if waits and best is not None and seconds is not None and (best.seconds or 0.0) + SOON < seconds:
        advice = _command(entry, best)
    return msgspec.structs.replace(made, run=run.id, run_seconds=seconds if waits else None, advice=advice)


def _command(entry: Entry, best: ExpectedStart) -> str:
    """Return what to do to start a run elsewhere: a retry uses the context of the run."""
    partition = f" --partition {best.partition}" if not best.own else ""
    where = f"`--context {best.context}{partition}`"
    return f"submit it again with {where} and its other options, then cancel this one: `yurt cancel {entry.run.id}`"


class BestContext(msgspec.Struct, frozen=True, kw_only=True):
    """The context where a request starts first."""

    context: str
    request: Request
    """The request, with the partition to use."""
    text: str
    """The choice in one line."""


def best(request: Request, *, watch: Watch = unwatched) -> BestContext:
    """Choose the context where a request starts first, with the time to copy what it needs. Submits nothing."""
    from yurt.where.best import choose_best

    made, changed = choose_best(folders.store(), request, watch)
    first, *others = made
    start = first.start
    assert start is not None
    place = f"{first.context}, partition {start.partition}" if start.partition else first.context
    counted = f", counting {' and '.join(first.transfer.what)}" if first.transfer.seconds >= 1 else ""
    rest = [f"{each.context}: {_when(each.seconds) if not each.why_not else each.why_not}" for each in others]
    text = f"best: {place}, starts {_when(first.seconds)}{counted}" + (f" ({'; '.join(rest)})" if rest else "")
    return BestContext(context=first.context, request=changed, text=text)


def is_best(context: str) -> bool:
    """Return whether the name of the context to use, by --context or YURT_CONTEXT, means the best one."""
    return allowed.means_best(contexts.current_name(context))


def _when(seconds: float) -> str:
    from yurt.model.progress import duration

    if seconds == float("inf"):
        return "at an unknown time"
    return "now" if seconds <= SOON else f"in {duration(seconds)}"


CONTEXTS = "Query only these contexts: NAME, or several with commas."

EXAMPLES = [
    "yurt where --time 12h --gpus 1",
    "yurt where --context alpha,beta --cpus 8 --mem 32G --time 4h",
    "yurt where --partition short --time 30m",
    "yurt where x7q4z",
]


@verb(examples=EXAMPLES, context_help=CONTEXTS)
@argument("run", metavar="[RUN]", required=False, shell_complete=run_names)
@setting_options(settings.RESOURCES)
def where_command(run: str | None, **options: Any) -> int:
    """Show where a run would start first.

    Asks every context, or those that the project lists as `contexts` in yurt.yaml, when a run with these resources
    would start in each of its partitions, and sorts the answers. It submits nothing: it filters by the recorded limits
    of the site, then asks Slurm (`sbatch --test-only`, at most 8 times for each context), and keeps the answers for
    a minute. If nothing starts now, it also tries shorter times, fewer GPUs and fewer nodes.

    The range comes from how earlier estimates on the context turned out; the start is Slurm's estimate, or the nearest
    end of the range. With RUN, it uses the resources of that run,
    and says whether it would start earlier elsewhere.
    """
    from yurt.cli.progress import watching

    request = None if run else _request(options)
    if run and any(value not in (None, (), "") for value in options.values()):
        raise UserError(
            "RUN and options of resources cannot be combined",
            code="usage",
            hint=f"use `yurt where {run}`, or the options without it",
        )
    names = [call.current().context] if call.current().context else []
    with watching() as watch:
        found = where(request, run=run or "", names=names, watch=watch)
    return render.result(found, lambda: _print(found.data), requested=True)


def _request(options: dict[str, Any]) -> Any:
    from yurt.lifecycle.plan.request import Request
    from yurt.lifecycle.run_request import flags

    return Request(words=(), flags=flags(options))


def _print(found: Where) -> None:
    from yurt.cli.listing import listing

    if found.starts:
        listing(
            ["context", "partition", "starts", "range", "because"],
            [_row(each) for each in found.starts],
            styles=[_style(each) for each in found.starts],
            styled="starts",
            shrinks=["because", "partition"],
            drops=["range"],
            notes=[_reason(each) for each in found.starts],
        )
    else:
        print("no context to ask")
    for smaller in found.smaller[:3]:
        print(render.plain(_smaller_line(smaller, found)))
    if found.run and found.run_seconds is not None:
        print(render.plain(f"run {found.run} itself starts {_start_text(found.run_seconds)}"))
    if found.advice:
        print(render.plain(f"earlier: {found.advice}"))
    asked = {each.context for each in found.starts if each.seconds is not None and each.partition}
    for record in found.records:
        if record.context in asked:
            print(render.plain(f"{record.context}: {_record(record)}"))


def _row(each: ExpectedStart) -> list[str]:
    preempted = f"jobs can be preempted ({each.preempted.lower()})" if each.preempted else ""
    why = "" if each.why_not else ", ".join(part for part in (each.waits_for, preempted) if part)
    return [
        each.context,
        each.partition + ("*" if each.own and each.partition else ""),
        _starts(each),
        _range(each),
        why,
    ]


def _reason(each: ExpectedStart) -> str:
    """Return why it cannot start, for lines of its own: it is too long for a column."""
    return each.why_not.removeprefix(REJECTED)


def _style(each: ExpectedStart) -> str:
    if each.why_not:
        return "dim"
    return "green" if each.likely is not None and each.likely <= SOON else ""


def _starts(each: ExpectedStart) -> str:
    if each.why_not:
        return "unknown" if each.unreachable else "rejected" if each.why_not.startswith(REJECTED) else "cannot"
    return "unknown" if each.likely is None else _start_text(each.likely)


def _start_text(seconds: float) -> str:
    return "now" if seconds <= SOON else f"in {render.span(seconds)}"


def _range(each: ExpectedStart) -> str:
    if each.why_not or each.low is None or each.high is None or not each.partition:
        return ""
    return f"{'now' if each.low <= SOON else render.span(each.low)} to {render.span(max(each.high, SOON))}"


def _smaller_line(each: SmallerRequest, found: Where) -> str:
    place = f"on {each.context} in partition {each.partition}"
    if each.minutes is not None:
        less, instead = f"--time {_time(each.minutes)}", f" instead of {_time(found.minutes)}" if found.minutes else ""
    elif each.gpus is not None:
        less, instead = f"--gpus {each.gpus}", f" instead of {found.gpus}"
    else:
        less, instead = f"--nodes {each.nodes}", f" instead of {found.nodes}"
    return f"with {less}{instead} it would start {_start_text(each.seconds)} {place}"


def _time(minutes: int) -> str:
    if minutes % 60 == 0:
        return f"{minutes // 60}h"
    return f"{minutes}m" if minutes < 60 else f"{minutes // 60}h{minutes % 60:02}m"


def _record(each: TrackRecord) -> str:
    if each.runs:
        return f"in {each.within} of {render.count(each.runs, 'run')} the start was within the range"
    if each.waits:
        return f"no earlier estimates; the range is a cautious one, from {render.count(each.waits, 'earlier wait')}"
    return "no earlier estimates; the range is a cautious one"
