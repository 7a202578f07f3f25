"""`yurt dev connect NAME`: the ProxyCommand of the ssh names of dev nodes."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress

import click

from yurt.cli.app import verb


@verb(examples=["yurt dev connect default"], hidden=True, context_help="")
@click.argument("name")
def connect(name: str) -> None:
    """Connect standard input and output to a dev node.

    ssh calls this.
    """
    from yurt.verbs import dev_connect as verbs

    argv = verbs.command(name)
    hide_refused_sessions()
    os.execvp(argv[0], argv)


def hide_refused_sessions() -> None:
    """Remove a line of ssh from standard error, also of a program that this process becomes.

    If the shared connection has no free session, ssh prints it as an error and opens a connection of its own.
    """
    words = ["grep", "--line-buffered", "-a", "-v", "^mux_client_request_session: .* refused by peer"]
    with suppress(OSError):  # then the line is shown
        shown = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=2, start_new_session=True)
        if shown.stdin is not None:
            os.dup2(shown.stdin.fileno(), 2)
