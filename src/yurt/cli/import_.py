"""`yurt import CONTEXT`: the runs on a context, also those that another machine made."""

from __future__ import annotations

import click

from yurt.cli import app, render
from yurt.cli.app import context_names, verb


@verb(name="import", examples=["yurt import alpha", "yurt import alpha --project thesis"])
@click.argument("name", metavar="CONTEXT", shell_complete=context_names)
@click.option("--project", metavar="NAME", default="", help="Only runs of this project.")
def import_(name: str, project: str) -> None:
    """Make the runs on a context known here: those of another machine of yours, or after the index was lost.

    From then on they are followed, cancelled and retried like any other. What is known here stays as it is.
    """
    from yurt.cli.progress import watching
    from yurt.config import contexts
    from yurt.sites.folders import store
    from yurt.verbs import import_ as verbs

    with watching() as watch:
        found, warnings = verbs.import_(store(), contexts.named(name), project=project, watch=watch)
    app.current().warnings += warnings

    def for_people() -> None:
        left_out = f", {len(found.unreadable)} left out" if found.unreadable else ""
        print(f"{found.context}: {len(found.new)} new, {found.known} known{left_out}")

    render.show("runs-imported", found, for_people)
