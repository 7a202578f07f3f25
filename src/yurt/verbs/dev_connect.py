"""dev connect: becomes the program that connects ssh to the present node of a dev node."""

from __future__ import annotations

from yurt.dev import connect, shortcut, views
from yurt.dev.shortcut import QUIET, going
from yurt.errors import UnreachableError
from yurt.sites import folders
from yurt.verbs.dev_find import brought_back, clock, running
from yurt.verbs.dev_words import named

__all__ = ["QUIET", "command", "going", "lost"]


def command(name: str) -> tuple[str, list[str]]:
    """Return which node a dev node is on, and the program that connects its standard streams to it.

    NotFoundError, RefusedError: it is not running, or ssh cannot reach it. UnreachableError.
    """
    entry = running(folders.store(), name).entry
    found = connect.link(entry, name)
    return connect.where(entry, found), connect.argv(entry, found, name)


def lost(name: str) -> UnreachableError:
    """Return the error about a connection that failed, for a dev node that runs according to its site.

    NotFoundError, RefusedError: it does not run; the error says how it ended.
    """
    shortcut.forget(name)
    desk = running(folders.store(), name)
    node = views.of(desk, views.read_status(desk))
    heard = f"; it was last heard of at {clock(node.seen)}" if node.seen is not None else ""
    back = brought_back(name, node.context) or f"`yurt dev up{named(name)}` starts another"
    return UnreachableError(
        f"dev node '{name}': the connection to {node.node} of {node.context} failed{heard}",
        code="connection-lost",
        hint=f"try again; if the node failed, its job ends within minutes, and {back}",
    )
