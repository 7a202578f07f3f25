"""dev connect: becomes the program that connects ssh to the present node of a dev node."""

from __future__ import annotations

from yurt.dev import connect
from yurt.sites import folders
from yurt.verbs.dev_find import running


def command(name: str) -> list[str]:
    """Return the program that connects its standard streams to a running dev node.

    NotFoundError, RefusedError: it is not running, or ssh cannot reach it. UnreachableError.
    """
    entry = running(folders.store(), name).entry
    return connect.argv(entry, connect.link(entry, name), name)
