"""`yurt hold RUN…` and `yurt release RUN…`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from yurt.cli import render
from yurt.cli.app import run_names, verb

if TYPE_CHECKING:
    from yurt.lifecycle.hold import Held
    from yurt.model.result import Result


@verb(examples=["yurt hold -", "yurt hold x7q4z @last-sweep"], context_help="")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=run_names)
def hold(runs: tuple[str, ...]) -> int:
    """Keep queued runs from starting.

    The jobs stay in Slurm's queue until `yurt release`. The tasks of a sweep that are running continue.
    """
    from yurt.lifecycle import hold as verbs

    return _printed(verbs.hold(runs))


@verb(examples=["yurt release -", "yurt release x7q4z 8m2kd"], context_help="")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=run_names)
def release(runs: tuple[str, ...]) -> int:
    """Let held runs start.

    Releases runs that `yurt hold`, `yurt run --hold` or `scontrol hold` holds. A hold of an administrator stays.
    """
    from yurt.lifecycle import hold as verbs

    return _printed(verbs.release(runs))


def _printed(found: Result[list[Held]]) -> int:
    def print_text() -> None:
        for each in found.data:
            print(f"{each.id} {each.state}")

    return render.result(found, print_text)
