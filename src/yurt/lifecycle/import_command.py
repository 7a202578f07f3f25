"""`yurt import CONTEXT`: add the runs on a context to the index, including those of other machines."""

from __future__ import annotations

import click

from yurt.cli import render
from yurt.cli.app import context_names, verb


@verb(name="import", examples=["yurt import alpha", "yurt import alpha --project thesis"], context_help="")
@click.argument("name", metavar="CONTEXT", shell_complete=context_names)
@click.option("--project", metavar="NAME", default="", help="Import only runs of this project.")
def import_(name: str, project: str) -> None:
    """Import the runs on a context into the local index.

    Use it for runs that you submitted from another machine, or after the index was lost. Imported runs can be
    followed, cancelled and retried like any other run. Runs already in the index are left unchanged.
    """
    from yurt.cli.progress import watching
    from yurt.lifecycle import import_ as verbs

    with watching() as watch:
        found = verbs.import_(name, project=project, watch=watch)

    def print_text() -> None:
        done = found.data
        unreadable = f", {len(done.unreadable)} unreadable" if done.unreadable else ""
        print(f"{done.context}: {len(done.new)} imported, {done.known} already in the index{unreadable}")

    render.result(found, print_text)
