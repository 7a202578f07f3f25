"""`yurt race`: runs that were submitted to several contexts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from yurt.cli import render
from yurt.cli.app import Group, run_names, verb
from yurt.cli.progress import watching
from yurt.errors import UserError

if TYPE_CHECKING:
    from yurt.lifecycle.race import Released, Stuck


@click.group(cls=Group, examples=["yurt race release -"], context_help="")
def race() -> None:
    """Release a race whose winner cannot be reached.

    `yurt run --race alpha,beta` submits a run to several contexts; it runs where it starts first.
    """


@verb(race, examples=["yurt race release -", "yurt race release x7q4z --yes"], context_help="")
@click.argument("run", metavar="RUN", shell_complete=run_names)
@click.option("--yes", is_flag=True, help="Do not ask.")
def release(run: str, yes: bool) -> int:
    """Release the claim of a context that does not respond.

    A race has one winner, and the others are withdrawn. If the winner's site does not respond any more, nobody can tell
    whether your code still runs there, so the race waits. This command gives it up: the race is submitted again to the
    other contexts. If the lost site comes back, its copy may have been running at the same time; effects outside the
    run folder, such as files in your home folder, may then have happened twice. Only the new result counts.
    """
    from yurt.lifecycle import race as verbs

    def confirm(stuck: Stuck) -> None:
        if yes:
            return
        if not sys.stdin.isatty():
            raise UserError("nothing was released: there is no terminal to ask on", code="usage", hint="add `--yes`")
        if not click.confirm(_question(stuck), default=False, err=True):
            raise UserError("nothing was released", code="usage", hint="answer y to release it")

    with watching() as watch:
        found = verbs.release(run, confirm=confirm, watch=watch)
    return render.result(found, lambda: _print(found.data))


def _question(stuck: Stuck) -> str:
    what = f"{render.count(stuck.tasks, 'task')} of race {stuck.race}" if stuck.tasks > 1 else f"race {stuck.race}"
    return f"{stuck.context} may still be running {what}, and a second copy would start elsewhere; release it anyway?"


def _print(found: Released) -> None:
    where = f"submitted again to {', '.join(found.submitted)}" if found.submitted else "not submitted again"
    print(f"{found.id} released from {found.holder}, {where}")
