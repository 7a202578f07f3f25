"""`yurt import CONTEXT`: the runs on a context, also those that another machine made."""

from __future__ import annotations

import click

from yurt.cli import render
from yurt.cli.app import context_names, verb


@verb(name="import", examples=["yurt import alpha", "yurt import alpha --project thesis"])
@click.argument("name", metavar="CONTEXT", shell_complete=context_names)
@click.option("--project", metavar="NAME", default="", help="Only runs of this project.")
def import_(name: str, project: str) -> None:
    """Make the runs on a context known here: those of another machine of yours, or after the index was lost.

    From then on they are followed, cancelled and retried like any other. What is known here stays as it is.
    """
    from yurt.cli.progress import watching
    from yurt.verbs import import_ as verbs

    with watching() as watch:
        found = verbs.import_(name, project=project, watch=watch)

    def for_people() -> None:
        done = found.data
        left_out = f", {len(done.unreadable)} left out" if done.unreadable else ""
        print(f"{done.context}: {len(done.new)} new, {done.known} known{left_out}")

    render.result(found, for_people)
