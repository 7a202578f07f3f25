"""`yurt cluster [CONTEXT]`: a site in a dozen lines."""

from __future__ import annotations

import click

from yurt.cli import app, render
from yurt.cli.app import context_names, verb


@verb(examples=["yurt cluster", "yurt cluster big", "yurt cluster big --forgive n7"])
@click.argument("name", metavar="[CONTEXT]", required=False, default="", shell_complete=context_names)
@click.option("--forgive", metavar="NODE", multiple=True, help="Use a node again on which runs failed.")
def cluster(name: str, forgive: tuple[str, ...]) -> None:
    """What is known of a site (the current one): partitions and limits, and which nodes yurt leaves alone.

    A node on which a run failed through no fault of its own is left alone for three days; --nodelist and
    --forgive say otherwise. `yurt context probe` asks the site anew.
    """
    from yurt.cli.context_add import print_facts
    from yurt.cli.progress import watching
    from yurt.verbs import cluster as verbs

    with watching() as watch:
        found = verbs.cluster(name or app.current().context, forgive=forgive, watch=watch)

    def for_people() -> None:
        print_facts(found.data.facts)
        for each in found.data.left_alone:
            why = f"{each.why or 'a run failed there'}, {render.moment(each.at)} (run {each.run})"
            print(f"{'left alone':11} {each.node}: {why}")

    render.result(found, for_people, asked=True)
