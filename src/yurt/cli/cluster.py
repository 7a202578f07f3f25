"""`yurt cluster [CONTEXT]`: a summary of a site."""

from __future__ import annotations

import click

from yurt.cli import app, render
from yurt.cli.app import context_names, verb


@verb(examples=["yurt cluster", "yurt cluster big", "yurt cluster big --allow n7"])
@click.argument("name", metavar="[CONTEXT]", required=False, default="", shell_complete=context_names)
@click.option("--allow", metavar="NODE", multiple=True, help="Stop avoiding NODE; repeatable.")
def cluster(name: str, allow: tuple[str, ...]) -> None:
    """Show a site's partitions, limits, storage and avoided nodes.

    These facts are cached; `yurt context probe` queries the site again. After a run fails because of a node, yurt
    avoids that node for three days. --allow lifts this early; `yurt run --nodelist` overrides it for one run.
    """
    from yurt.cli.context_add import LABELS, print_facts
    from yurt.cli.progress import watching
    from yurt.verbs import cluster as verbs

    with watching() as watch:
        found = verbs.cluster(name or app.current().context, allow=allow, watch=watch)

    def print_text() -> None:
        print_facts(found.data.facts)
        for each in found.data.avoided_nodes:
            reason = f"{each.why or 'a run failed on this node'}, {render.moment(each.at)} (run {each.run})"
            render.fact("avoided", f"{each.node}: {reason}", LABELS + 1)

    render.result(found, print_text, requested=True)
