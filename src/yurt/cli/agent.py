"""`yurt agent`: submit saved runs and refresh states in the background."""

from __future__ import annotations

import click

from yurt.cli import render
from yurt.cli.app import Group, verb


@click.group(cls=Group, examples=["yurt agent once"], context_help="")
def agent() -> None:
    """Submit saved runs and refresh states.

    Submits saved runs and sends saved cancellations on all contexts.
    """


@verb(agent, examples=["yurt agent once", "yurt agent once --quiet", "yurt agent once --json"], context_help="")
def once() -> int:
    """Submit saved runs and refresh states once.

    Also syncs homes if the `interval` of homes.yaml is over, or if a run waits for a home sync.

    To do this every five minutes, add this line to your crontab, with the path that `command -v yurt` prints:

    \b
        */5 * * * * $HOME/.local/bin/yurt agent once --quiet
    """
    from yurt.cli.progress import watching
    from yurt.verbs import agent as verbs

    with watching() as watch:
        found = verbs.once(watch=watch)

    def print_text() -> None:
        done = found.data
        contexts = render.count(len(done.contexts), "context")
        synced = f", {render.count(len(done.synced), 'pair')} of homes synced" if done.synced else ""
        print(f"{len(done.submitted)} submitted, {len(done.pending)} waiting, {contexts} refreshed{synced}")

    return render.result(found, print_text)
