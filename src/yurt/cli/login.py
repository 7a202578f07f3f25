"""`yurt login [CONTEXT…]`: answer a site's questions once; every other verb uses the connection."""

from __future__ import annotations

import sys

import click

from yurt.cli import app, render
from yurt.cli.app import context_names, verb


@verb(examples=["yurt login", "yurt login alpha beta", "yurt login alpha --close"])
@click.argument("contexts", nargs=-1, metavar="[CONTEXT]...", shell_complete=context_names)
@click.option("--close", is_flag=True, help="End the connection instead.")
def login(contexts: tuple[str, ...], close: bool) -> None:
    """Open the connection to each CONTEXT (the current one, if none is named).

    The only verb that may ask you something: a passphrase, a code, whether a host key is right.
    The connection stays for twelve hours after its last use.
    """
    from yurt.verbs import login as verbs

    now = app.current()
    if close:
        done = verbs.logout(contexts, context=now.context)
    else:
        may_prompt = sys.stdin.isatty() and sys.stderr.isatty() and not now.json
        done = verbs.login(contexts, context=now.context, may_prompt=may_prompt)

    def for_people() -> None:
        for each in done.data:
            words = ("was not connected", "closed") if close else ("was connected already", "connected")
            state = words[each.changed]
            print(f"{each.context}: {state} ({each.destination})")

    render.result(done, for_people)
