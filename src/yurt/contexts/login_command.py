"""`yurt login [CONTEXT…]`: open an ssh connection that all other commands share."""

from __future__ import annotations

import sys

import click

from yurt.cli import app, render
from yurt.cli.app import context_names, verb


@verb(examples=["yurt login", "yurt login alpha beta", "yurt login alpha --close"])
@click.argument("contexts", nargs=-1, metavar="[CONTEXT]...", shell_complete=context_names)
@click.option("--close", is_flag=True, help="Close the connections instead.")
def login(contexts: tuple[str, ...], close: bool) -> None:
    """Log in to sites and keep the connections open.

    Opens a connection to each CONTEXT, or to the current context. Only this command and `yurt context add` ask for
    a password, passphrase or one-time code, or ask you to confirm a host key. The connection stays open for twelve
    hours after its last use.
    """
    from yurt.contexts import login as verbs

    now = app.current()
    if close:
        done = verbs.logout(contexts, context=now.context)
    else:
        may_prompt = sys.stdin.isatty() and sys.stderr.isatty() and not now.json
        done = verbs.login(contexts, context=now.context, may_prompt=may_prompt)

    def print_text() -> None:
        for each in done.data:
            unchanged, changed = ("not connected", "closed") if close else ("already connected", "connected")
            state = changed if each.changed else unchanged
            print(f"{each.context}: {state} ({each.destination})")

    render.result(done, print_text)
