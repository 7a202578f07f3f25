"""`yurt shell RUN [COMMAND…]`: inside a running run."""

from __future__ import annotations

import sys

import click

from yurt.cli.app import run_names, verb


@verb(
    examples=["yurt shell -", "yurt shell x7q4z nvidia-smi", "yurt shell x7q4z sh -c 'tail -f $YURT_OUTPUTS/*.csv'"],
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("run", metavar="RUN", shell_complete=run_names)
@click.argument("words", nargs=-1, metavar="[COMMAND ...]", type=click.UNPROCESSED)
def shell(run: str, words: tuple[str, ...]) -> int:
    """Open a terminal inside a running run: on its node, in its folder, with its modules and variables.

    With a COMMAND that is run there instead, and its exit code is yours. What you do there counts against the
    run's own cores and memory. Secrets of the run are not there.
    """
    from yurt.errors import UserError
    from yurt.verbs import shell as verbs

    terminal = not words
    if terminal and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UserError("this is no terminal", code="usage", hint=f"yurt shell {run} COMMAND")
    return verbs.shell(run, words, terminal=terminal)
