"""`yurt dev connect NAME`: the ProxyCommand of the ssh names of dev nodes."""

from __future__ import annotations

import os
import select
import subprocess
from contextlib import suppress

import click

from yurt.cli.app import verb

HIDDEN = (
    "^mux_client_request_session: .* refused by peer",
    "^stdio forwarding failed",
    "^kex_exchange_identification: ",
    "UNKNOWN port 65535",
)
"""Lines of ssh that say nothing to the user: no free session on the shared connection, so that ssh opens one of its
own; and the end of a connection through another one, after the line with its reason."""


@verb(examples=["yurt dev connect default"], hidden=True, context_help="")
@click.argument("name")
@click.option("--lost", is_flag=True, help="Say why a connection failed.")
def connect(name: str, lost: bool) -> None:
    """Connect standard input and output to a dev node.

    ssh calls this.
    """
    from yurt.verbs import dev_connect as verbs

    if lost:
        if not _is_closed(1):
            raise verbs.lost(name)
        return
    argv = verbs.command(name)
    hide_noise()
    os.execvp("sh", ["sh", "-c", verbs.going(name), "sh", *argv])


def _is_closed(descriptor: int) -> bool:
    """Return whether nobody reads from a pipe any more: ssh has ended, so nobody waits for an explanation."""
    poll = select.poll()
    poll.register(descriptor, 0)
    return bool(poll.poll(0))


def hide_noise() -> None:
    """Remove some lines of ssh from standard error, also of a program that this process becomes."""
    words = ["grep", "--line-buffered", "-a", "-v", *(word for each in HIDDEN for word in ("-e", each))]
    with suppress(OSError):  # then the line is shown
        shown = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=2, start_new_session=True)
        if shown.stdin is not None:
            os.dup2(shown.stdin.fileno(), 2)
