"""`yurt cluster [CONTEXT]`: a summary of a site."""

from __future__ import annotations

import click

from yurt.cli import app, render
from yurt.cli.app import context_names, verb


@verb(examples=["yurt cluster", "yurt cluster big", "yurt cluster big --forgive n7"])
@click.argument("name", metavar="[CONTEXT]", required=False, default="", shell_complete=context_names)
@click.option("--forgive", metavar="NODE", multiple=True, help="Use an avoided node again; repeatable.")
def cluster(name: str, forgive: tuple[str, ...]) -> None:
    """Show the facts and the avoided nodes of a site.

    The facts (partitions, limits, storage) are cached; `yurt context probe` queries the site again. yurt avoids a
    node for three days after a run failed because of the node. --forgive ends this; `yurt run --nodelist` overrides
    it for one run.
    """
    from yurt.cli.context_add import print_facts
    from yurt.cli.progress import watching
    from yurt.verbs import cluster as verbs

    with watching() as watch:
        found = verbs.cluster(name or app.current().context, forgive=forgive, watch=watch)

    def print_text() -> None:
        print_facts(found.data.facts)
        for each in found.data.avoided_nodes:
            reason = f"{each.why or 'a run failed on this node'}, {render.moment(each.at)} (run {each.run})"
            print(f"{'avoided':11} {each.node}: {reason}")

    render.result(found, print_text, requested=True)
