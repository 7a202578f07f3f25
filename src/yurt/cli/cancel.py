"""`yurt cancel RUN…`: end runs."""

from __future__ import annotations

from contextlib import nullcontext

import click

from yurt.cli import render
from yurt.cli.app import run_names, verb
from yurt.cli.filters import FILTER, counted, folded
from yurt.cli.progress import watching
from yurt.model.progress import unwatched


@verb(examples=["yurt cancel -", "yurt cancel x7q4z 8m2kd", "yurt cancel @last-sweep --filter lr=0.1"])
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=run_names)
@FILTER
def cancel(runs: tuple[str, ...], filters: tuple[str, ...]) -> int:
    """End runs: those that run, those in a queue, and those that have not gone out yet.

    With --filter those tasks of sweeps that pass it, in one go.
    Where the site is out of reach the wish is kept, and carried out with the next command that reaches it.
    """
    from yurt.verbs import cancel as verbs

    with watching() if filters else nullcontext(unwatched) as watch:
        found = verbs.cancel(runs, filters=filters, watch=watch)

    def for_people() -> None:
        done = found.data
        for name, places in folded([each.id for each in done]).items():
            each = done[places[0]]
            if len(places) > 1:
                waits = "" if each.told else f"; {each.context} is not told yet ({each.note}), it will be"
                print(f"{name}: {len(places)} tasks, {counted(done[at].state for at in places)}{waits}")
                continue
            if not each.told:
                print(f"{each.id}: {each.context} is not told yet ({each.note}); it will be when it answers")
            else:
                print(f"{each.id} {each.state}" + (f": {each.note}" if each.note else ""))

    return render.result(found, for_people)
