"""`yurt why RUN`: what holds a run up, or why it failed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from yurt.cli import render
from yurt.cli.app import run_names, verb
from yurt.model.run import FINAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from yurt.model.live import NodeTrouble, Reservation
    from yurt.model.pending import Awaited, Pending
    from yurt.verbs.why import Explanation
    from yurt.why.failed import Cause

SHOWN = 8
"""Numbers of tasks that are printed for each cause."""


@verb(examples=["yurt why -", "yurt why x7q4z", "yurt why @last-sweep --json"], context_help="")
@click.argument("run", metavar="RUN", shell_complete=run_names)
def why(run: str) -> int:
    """Explain why a run is pending or failed, and what to do.

    For a run in the queue: Slurm's reason in words, the limits with their values, its place in the queue, the expected
    start, and what administrators wrote about its nodes and its job. For a failed run: the cause according to its state
    and its logs, the last traceback, and the command to type if an option helps. For a sweep: its failed tasks by
    cause, with one example of each. For a run that holds GPUs and does not use them: that.

    Add rules of your own in `why.toml` in the configuration folder; they are tried first.
    """
    from yurt.cli.progress import watching
    from yurt.verbs import why as verbs

    with watching() as watch:
        found = verbs.why(run, watch=watch)
    return render.result(found, lambda: _print(found.data), requested=True)


def _print(found: Explanation) -> None:
    name = f" ({found.name})" if found.name else ""
    places = ", ".join(dict.fromkeys(each.context for each in found.candidates)) or found.context
    print(render.plain(f"{found.run}{name} on {places}: {found.state}"))
    if found.cause is not None:
        _print_cause(found.cause, about=_about_job(found))
    elif found.pending is not None:
        if found.state == "running":
            print("some of its tasks are in the queue")
        _print_pending(found.pending)
    elif found.unused is not None:
        _print_cause(found.unused)
    elif not found.groups:
        print(render.plain(found.reason or _fine(found.state)))
    for each in found.candidates:
        place = f"{each.context}{f' ({each.partition})' if each.partition else ''}"
        print(render.plain(f"where: {place}: {render.with_reason(each.state, each.reason)}"))
    for group in found.groups:
        print()
        count = len(group.tasks)
        numbers = ", ".join(map(str, group.tasks[:SHOWN])) + (", …" if count > SHOWN else "")
        print(f"{render.count(count, 'task')} ({numbers}):")
        _print_cause(group.cause)
    if found.unread:
        print(f"\n{render.count(found.unread, 'more failed task')} not looked at")


def _fine(state: str) -> str:
    return "nothing is wrong with it" if state in ("completed", "running", "starting") else "no reason is known"


def _about_job(found: Explanation) -> list[tuple[str, str]]:
    """Return what is known about the job, the node and the predecessors of a failed run."""
    node = [("node", node_line(found.node))] if found.node is not None and found.cause is not None else []
    after = [("after", _awaited(each)) for each in found.after]
    return [*after, *node, ("admin", found.admin_comment), ("slurm", found.system_comment)]


def _print_lines(lines: Sequence[tuple[str, str]]) -> None:
    for label, text in lines:
        if text:
            print(render.plain(f"{label + ':':<6} {text}"))


def node_line(node: NodeTrouble) -> str:
    """Return a node that is down or drained, with its reason."""
    since = f" since {render.moment(node.since)}" if node.since is not None else ""
    return f"{node.node} is {node.state}{since}: {node.reason or 'no reason given'}"


def _print_cause(cause: Cause, about: Sequence[tuple[str, str]] = ()) -> None:
    print(render.plain(f"cause: {cause.sentence}"))
    if cause.line and cause.line not in cause.traceback:
        print(render.plain(f"log:   {cause.line}"))
    _print_lines(about)
    if cause.advice:
        print(render.plain(f"help:  {cause.advice}"))
    if cause.retry:
        print(render.plain(f"type:  {cause.retry}"))
    if cause.traceback:
        print()
        for line in cause.traceback.splitlines():
            print(render.plain(f"  {line}"))


def _print_pending(found: Pending) -> None:
    native = f" (Slurm: {found.native})" if found.native else ""
    print(render.plain(f"cause: {found.sentence}{native}"))
    _print_lines(pending_lines(found))
    if found.advice:
        print(render.plain(f"help:  {found.advice}"))


def pending_lines(found: Pending) -> list[tuple[str, str]]:
    """Return what is known about a run that waits, as labels and texts; empty texts are not printed."""
    start = ""
    if found.starts_at is not None:
        left = found.starts_at - time.time()
        start = f"expected at {render.moment(found.starts_at)}" + (f", in {render.span(left)}" if left > 0 else "")
    return [
        *(("limit", each) for each in found.limits),
        *(("after", _awaited(each)) for each in found.after),
        *(("node", node_line(each)) for each in found.nodes),
        *(("maint", _maintenance(each)) for each in found.maintenance),
        ("admin", found.admin_comment),
        ("slurm", found.system_comment),
        ("queue", _place(found)),
        ("free", _free(found)),
        ("start", start),
        ("since", f"submitted {render.span(found.waited)} ago" if found.waited is not None else ""),
    ]


def _awaited(each: Awaited) -> str:
    if each.state is None:
        return f"run {each.run}, which this machine does not know"
    if each.state in FINAL and not each.ended:
        return f"run {each.run} has not completed: {each.state}"
    return f"run {each.run} is {each.state}; this one follows when it has {'ended' if each.ended else 'completed'}"


def _maintenance(each: Reservation) -> str:
    ends = f" until {render.moment(each.ends_at)}" if each.ends_at is not None else ""
    begins = "is active" if each.active else f"begins at {render.moment(each.starts_at)}"
    return f"reservation {each.name} {begins}{ends}, on {render.count(each.node_count, 'node')}"


def _place(found: Pending) -> str:
    if found.place is None:
        return ""
    ahead = found.place - 1
    yours = ""
    if found.yours_ahead:
        yours = f", {found.yours_ahead} of them yours" if found.yours_ahead < ahead else " (yours)"
    where = f" in partition {found.partition}" if found.partition else ""
    return (f"{render.count(ahead, 'job')} ahead of it{yours}" if ahead else "it is next") + where


def _free(found: Pending) -> str:
    if found.free_cpus is None:
        return ""
    gpus = f" and {render.count(found.free_gpus, 'GPU')}" if found.free_gpus is not None else ""
    where = f" in partition {found.partition}" if found.partition else ""
    return f"{render.count(found.free_cpus, 'CPU')}{gpus}{where}"
