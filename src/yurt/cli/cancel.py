"""`yurt cancel RUN…`: cancel runs."""

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
    """Cancel runs.

    Cancels running, queued and not yet submitted runs. --filter selects tasks of sweeps and cancels them in one
    request. If the site is unreachable, the request is saved and the next yurt command that reaches the site sends
    it.
    """
    from yurt.verbs import cancel as verbs

    with watching() if filters else nullcontext(unwatched) as watch:
        found = verbs.cancel(runs, filters=filters, watch=watch)

    def print_text() -> None:
        done = found.data
        for name, places in folded([each.id for each in done]).items():
            each = done[places[0]]
            if len(places) > 1:
                pending = "" if each.delivered else f"; cancellation pending: {each.note}"
                print(f"{name}: {len(places)} tasks, {counted(done[at].state for at in places)}{pending}")
                continue
            if not each.delivered:
                print(f"{each.id}: cancellation pending: {each.note}")
            else:
                print(f"{each.id} {each.state}" + (f": {each.note}" if each.note else ""))

    return render.result(found, print_text)
