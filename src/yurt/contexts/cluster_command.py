"""`yurt cluster [CONTEXT…]`: the state of sites now."""

from __future__ import annotations

import click

from yurt.cli import app, render
from yurt.cli.app import context_names, verb


@verb(
    examples=["yurt cluster", "yurt cluster alpha beta", "yurt cluster --all", "yurt cluster big --allow n7"],
)
@click.argument("names", nargs=-1, metavar="[CONTEXT]...", shell_complete=context_names)
@click.option("--all", "every", is_flag=True, help="Query every context.")
@click.option("--allow", metavar="NODE", multiple=True, help="Stop avoiding NODE; repeatable.")
def cluster(names: tuple[str, ...], every: bool, allow: tuple[str, ...]) -> int:
    """Show what is free on sites, the queue and maintenance, now.

    Queries each CONTEXT, or the current context, in parallel. For Slurm it shows what is free, which partitions you
    may use, your place in the queue, your fair share, and reservations ahead; -v adds why nodes are down and the
    recorded facts. If a site does not respond, its recorded facts are shown and the exit code is 4.

    After a run fails because of a node, yurt avoids that node for three days. --allow lifts this early;
    `yurt run --nodelist` overrides it for one run.
    """
    from yurt.cli.progress import watching
    from yurt.contexts import cluster as verbs
    from yurt.contexts.cluster_text import print_cluster

    now = app.current()
    with watching() as watch:
        found = verbs.cluster(names, context=now.context, every=every, allow=allow, watch=watch)

    def print_text() -> None:
        for at, each in enumerate(found.data):
            if at:
                print()
            print_cluster(each, details=bool(now.verbose))

    return render.result(found, print_text, requested=True)
