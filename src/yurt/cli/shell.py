"""`yurt shell RUN [COMMAND…]`: a shell or a command inside a run."""

from __future__ import annotations

import sys

import click

from yurt.cli.app import run_names, verb


@verb(
    examples=["yurt shell -", "yurt shell x7q4z nvidia-smi", "yurt shell x7q4z sh -c 'tail -f $YURT_OUTPUTS/*.csv'"],
    context_help="",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("run", metavar="RUN", shell_complete=run_names)
@click.argument("command", nargs=-1, metavar="[COMMAND]...", type=click.UNPROCESSED)
def shell(run: str, command: tuple[str, ...]) -> int:
    """Open a shell inside a run.

    The run must be running. The shell runs on the run's node, in its folder, with its modules and variables but without
    its secrets. It shares the run's cores and memory. With COMMAND, runs it instead of a shell and returns its exit
    code.
    """
    from yurt.errors import UserError
    from yurt.verbs import shell as verbs

    terminal = not command
    if terminal and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UserError(
            "cannot open a shell: standard input is not a terminal",
            code="usage",
            hint=f"run a command with `yurt shell {run} COMMAND`",
        )
    return verbs.shell(run, command, terminal=terminal)
