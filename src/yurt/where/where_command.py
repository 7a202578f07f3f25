"""`yurt where [RUN]`: where a request would start first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from yurt.cli import app, render
from yurt.cli.app import run_names, verb
from yurt.cli.settings import options as setting_options
from yurt.errors import UserError
from yurt.model import settings
from yurt.model.where import REJECTED

if TYPE_CHECKING:
    from yurt.model.where import ExpectedStart, SmallerRequest, TrackRecord
    from yurt.where.where import Where

CONTEXTS = "Query only these contexts: NAME, or several with commas."

EXAMPLES = [
    "yurt where --time 12h --gpus 1",
    "yurt where --context alpha,beta --cpus 8 --mem 32G --time 4h",
    "yurt where --partition short --time 30m",
    "yurt where x7q4z",
]

SOON = 60.0


@verb(examples=EXAMPLES, context_help=CONTEXTS)
@click.argument("run", metavar="[RUN]", required=False, shell_complete=run_names)
@setting_options(settings.RESOURCES)
def where(run: str | None, **options: Any) -> int:
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
    from yurt.where import where as verbs

    request = None if run else _request(options)
    if run and any(value not in (None, (), "") for value in options.values()):
        raise UserError(
            "RUN and options of resources cannot be combined",
            code="usage",
            hint=f"use `yurt where {run}`, or the options without it",
        )
    names = [app.current().context] if app.current().context else []
    with watching() as watch:
        found = verbs.where(request, run=run or "", names=names, watch=watch)
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
        print(render.plain(f"run {found.run} itself starts {_when(found.run_seconds)}"))
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
    return "unknown" if each.likely is None else _when(each.likely)


def _when(seconds: float) -> str:
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
    return f"with {less}{instead} it would start {_when(each.seconds)} {place}"


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
