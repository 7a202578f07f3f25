"""`yurt why RUN`: what holds a run up, or why it failed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from yurt.cli import render
from yurt.cli.app import run_names, verb

if TYPE_CHECKING:
    from yurt.verbs.why import Explanation
    from yurt.why.failed import Cause
    from yurt.why.pending import Pending

SHOWN = 8
"""Numbers of tasks that are printed for each cause."""


@verb(examples=["yurt why -", "yurt why x7q4z", "yurt why @last-sweep --json"], context_help="")
@click.argument("run", metavar="RUN", shell_complete=run_names)
def why(run: str) -> int:
    """Explain why a run is pending or failed, and what to do.

    For a run in the queue: Slurm's reason in words, its place in the queue, and the expected start. For a failed run:
    the cause according to its state and its logs, the last traceback, and the command to type if an option helps. For a
    sweep: its failed tasks by cause, with one example of each.

    Add rules of your own in `why.toml` in the configuration folder; they are tried first.
    """
    from yurt.cli.progress import watching
    from yurt.verbs import why as verbs

    with watching() as watch:
        found = verbs.why(run, watch=watch)
    return render.result(found, lambda: _print(found.data), requested=True)


def _print(found: Explanation) -> None:
    name = f" ({found.name})" if found.name else ""
    print(render.plain(f"{found.run}{name} on {found.context}: {found.state}"))
    if found.cause is not None:
        _print_cause(found.cause)
    elif found.pending is not None:
        _print_pending(found.pending)
    elif not found.groups:
        print(render.plain(found.reason or _fine(found.state)))
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


def _print_cause(cause: Cause) -> None:
    print(render.plain(f"cause: {cause.sentence}"))
    if cause.line and cause.line not in cause.traceback:
        print(render.plain(f"log:   {cause.line}"))
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
    if found.place is not None:
        ahead = found.place - 1
        said = f"{render.count(ahead, 'job')} ahead of it" if ahead else "it is next"
        print(render.plain(f"queue: {said}{f' in partition {found.partition}' if found.partition else ''}"))
    if found.starts_at is not None:
        left = found.starts_at - time.time()
        when = f", in {render.span(left)}" if left > 0 else ""
        print(f"start: expected at {render.moment(found.starts_at)}{when}")
    if found.waited is not None:
        print(f"since: submitted {render.span(found.waited)} ago")
    if found.advice:
        print(render.plain(f"help:  {found.advice}"))
