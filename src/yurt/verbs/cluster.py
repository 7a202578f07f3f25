"""cluster: show the recorded facts of a site and the nodes that yurt avoids on it."""

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
    """The facts of a site, and the nodes that yurt avoids because runs failed on them."""

    context: str
    facts: Facts
    avoided_nodes: list[BadNode]


def cluster(name: str = "", *, allow: Sequence[str] = (), watch: Watch = unwatched) -> Result[Cluster]:
    """Return the facts of a context's site, by default the current context's; with `allow`, stop avoiding these nodes.

    NotFoundError: yurt does not avoid one of these nodes.
    """
    context = contexts.site(contexts.current_name(name))
    store = folders.store()
    facts = facts_of(context, watch=watch)
    avoided = {each.node for each in bad_nodes.known(store, context.name)}
    for node in allow:
        if node not in avoided:
            raise NotFoundError(
                f"node '{node}' is not on the avoided list of {context.name}",
                code="not-found",
                hint=f"list avoided nodes with `yurt cluster {context.name}`",
            )
    for node in allow:
        store.forget_bad_node(context.name, node)
    found = Cluster(context=context.name, facts=facts, avoided_nodes=bad_nodes.known(store, context.name))
    return Result(kind="cluster", data=found)
