"""`yurt agent`: submit pending runs and refresh states in the background."""

from __future__ import annotations

import click

from yurt.cli import render
from yurt.cli.app import Group, verb


@click.group(cls=Group, examples=["yurt agent once"])
def agent() -> None:
    """Submit pending runs and refresh states.

    Submits the runs in the outbox and sends pending cancellations, on all contexts.
    """


@verb(agent, examples=["yurt agent once", "yurt agent once --quiet", "yurt agent once --json"])
def once() -> int:
    """Submit pending runs and refresh states once.

    To do this every five minutes, call `yurt agent once --quiet` from a crontab.
    """
    from yurt.cli.progress import watching
    from yurt.verbs import agent as verbs

    with watching() as watch:
        found = verbs.once(watch=watch)

    def print_text() -> None:
        done = found.data
        print(f"{len(done.submitted)} submitted, {len(done.pending)} pending, {len(done.contexts)} contexts refreshed")

    return render.result(found, print_text)
