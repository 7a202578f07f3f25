"""dev connect: becomes the program that connects ssh to the present node of a dev node."""

from __future__ import annotations

import os
import select

from yurt.cli import call, render
from yurt.cli.declare import argument, option, verb
from yurt.contexts import folders
from yurt.dev import shortcut, views
from yurt.dev import ssh_connection as connect
from yurt.dev.find import brought_back, clock, running
from yurt.dev.shortcut import QUIET, going
from yurt.dev.words import named
from yurt.errors import UnreachableError, YurtError


def command(name: str) -> tuple[str, list[str]]:
    """Return which node a dev node is on, and the program that connects its standard streams to it.

    NotFoundError, RefusedError: it is not running, or ssh cannot reach it. UnreachableError.
    """
    entry = running(folders.store(), name).entry
    found = connect.link(entry, name)
    return connect.where(entry, found), connect.argv(entry, found, name)


def why_lost(name: str) -> UnreachableError:
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


@verb(examples=["yurt dev connect default"], hidden=True, context_help="")
@argument("name")
@option("--lost", is_flag=True, help="Say why a connection failed.")
def connect_command(name: str, lost: bool) -> None:
    """Connect standard input and output to a dev node.

    ssh calls this.
    """

    if lost:
        if not _is_closed(1):
            raise why_lost(name)
        return
    try:
        where, argv = command(name)
    except YurtError as error:
        render.error(error, as_json=call.current().json, plain=call.current().plain)
        os.execvp("sh", ["sh", "-c", f"{QUIET}; exit {error.exit_code}"])
    os.execvp("sh", ["sh", "-c", going(name), "sh", where, *argv])


def _is_closed(descriptor: int) -> bool:
    """Return whether nobody reads from a pipe any more: ssh has ended, so nobody waits for an explanation."""
    poll = select.poll()
    poll.register(descriptor, 0)
    return bool(poll.poll(0))
