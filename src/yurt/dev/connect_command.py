"""`yurt dev connect NAME`: the ProxyCommand of the ssh names of dev nodes."""

from __future__ import annotations

import os
import select

import click

from yurt.cli import app, render
from yurt.cli.app import verb
from yurt.errors import YurtError


@verb(examples=["yurt dev connect default"], hidden=True, context_help="")
@click.argument("name")
@click.option("--lost", is_flag=True, help="Say why a connection failed.")
def connect(name: str, lost: bool) -> None:
    """Connect standard input and output to a dev node.

    ssh calls this.
    """
    from yurt.dev import connect as verbs

    if lost:
        if not _is_closed(1):
            raise verbs.lost(name)
        return
    try:
        where, argv = verbs.command(name)
    except YurtError as error:
        render.error(error, as_json=app.current().json, plain=app.current().plain)
        os.execvp("sh", ["sh", "-c", f"{verbs.QUIET}; exit {error.exit_code}"])
    os.execvp("sh", ["sh", "-c", verbs.going(name), "sh", where, *argv])


def _is_closed(descriptor: int) -> bool:
    """Return whether nobody reads from a pipe any more: ssh has ended, so nobody waits for an explanation."""
    poll = select.poll()
    poll.register(descriptor, 0)
    return bool(poll.poll(0))
