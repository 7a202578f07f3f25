"""cluster: a site as it was last seen, and what runs went through there."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from yurt.errors import NotFoundError
from yurt.lifecycle import bad_nodes
from yurt.model.context import Context
from yurt.model.facts import Facts
from yurt.model.progress import Watch, unwatched
from yurt.sites.facts import facts_of
from yurt.store import BadNode, Store


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a site, and the nodes that are left alone because runs failed on them."""

    context: str
    facts: Facts
    left_alone: list[BadNode]


def cluster(store: Store, context: Context, *, forgive: Sequence[str] = (), watch: Watch = unwatched) -> Cluster:
    facts = facts_of(context, watch=watch)
    known = {each.node for each in bad_nodes.known(store, context.name)}
    for node in forgive:
        if node not in known:
            raise NotFoundError(
                f"'{node}' is no node that yurt leaves alone on {context.name}",
                code="not-found",
                hint=f"yurt cluster {context.name}",
            )
    for node in forgive:
        store.forget_bad_node(context.name, node)
    return Cluster(context=context.name, facts=facts, left_alone=bad_nodes.known(store, context.name))
