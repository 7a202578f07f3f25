"""`yurt dev connect NAME`: the ProxyCommand of the ssh names of dev nodes."""

from __future__ import annotations

import os

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
    os.execvp(argv[0], argv)
