"""cluster: a site as it was last seen, and what runs went through there."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from yurt.config import contexts
from yurt.errors import NotFoundError
from yurt.lifecycle import bad_nodes
from yurt.model.facts import Facts
from yurt.model.progress import Watch, unwatched
from yurt.sites import folders
from yurt.sites.facts import facts_of
from yurt.store import BadNode
from yurt.verbs.result import Result


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a site, and the nodes that are left alone because runs failed on them."""

    context: str
    facts: Facts
    left_alone: list[BadNode]


def cluster(name: str = "", *, forgive: Sequence[str] = (), watch: Watch = unwatched) -> Result[Cluster]:
    """What is known of the site of a context, else of the current one. NotFoundError: no such node is left alone."""
    context = contexts.named(contexts.current_name(name))
    store = folders.store()
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
    found = Cluster(context=context.name, facts=facts, left_alone=bad_nodes.known(store, context.name))
    return Result(kind="cluster", data=found)
