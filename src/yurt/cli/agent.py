"""`yurt agent`: what waits moves on without a verb of yours."""

from __future__ import annotations

import click

from yurt.cli import render
from yurt.cli.app import Group, verb


@click.group(cls=Group, examples=["yurt agent once"])
def agent() -> None:
    """Move on whatever waits: runs in the outbox, cancellations not told yet."""


@verb(agent, examples=["yurt agent once", "yurt agent once --quiet   (every five minutes, in a crontab)"])
def once() -> int:
    """One round: submit what waits, look at every run that has not ended."""
    from yurt.cli.progress import watching
    from yurt.verbs import agent as verbs

    with watching() as watch:
        found = verbs.once(watch=watch)

    def for_people() -> None:
        done = found.data
        print(f"{len(done.submitted)} submitted, {len(done.waiting)} waiting, {len(done.contexts)} contexts looked at")

    return render.result(found, for_people)
