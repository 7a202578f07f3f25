"""`yurt dev ssh [NAME] [-- COMMAND…]`: a terminal on a dev node, or a command in its workspace."""

from __future__ import annotations

import os
import sys

import click

from yurt.cli import app
from yurt.cli.app import verb
from yurt.cli.dashes import WithDashes
from yurt.dev.names import dev_names
from yurt.errors import RefusedError, UserError

EXAMPLES = [
    "yurt dev ssh",
    "yurt dev ssh paper",
    "yurt dev ssh -- make test",
    "yurt dev ssh -- 'cd src; make'",
    "yurt dev ssh paper -- nvidia-smi",
]


@verb(
    cls=WithDashes,
    examples=EXAMPLES,
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": True},
    context_help="",
)
@click.argument("words", nargs=-1, metavar="[NAME] [-- COMMAND...]", type=click.UNPROCESSED, shell_complete=dev_names)
def ssh(words: tuple[str, ...]) -> int:
    """Open a terminal on a dev node, or run a command there.

    The session has the environment of the job. The exit code is that of the command. A COMMAND of one word is a line
    for sh, such as 'cd src; make'; several words are passed as they are. With --json, only errors are JSON.

    `ssh yurt-dev`, or `ssh yurt-dev-NAME`, opens the same terminal, and works with scp, rsync, port forwarding and
    editors; a command of `ssh yurt-dev` starts in the home directory, not in the workspace. Where ssh cannot reach the
    node, the terminal opens through the scheduler.
    """
    from yurt.cli.progress import watching_late
    from yurt.dev import ssh as verbs
    from yurt.dev.include_command import propose

    at = words.index("--") if "--" in words else len(words)
    names, command = words[:at], words[at + 1 :]
    if len(names) > 1:
        raise UserError(
            f"unexpected argument '{names[1]}'", code="usage", hint=f"for example: `yurt dev ssh {names[0]} -- ls`"
        )
    name = names[0] if names else "default"
    context = app.current().context
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    try:
        with watching_late() as watch:
            argv = verbs.command(name, command, context=context, terminal=terminal, watch=watch)
    except RefusedError as error:
        if error.code not in ("ssh-failed", "site-invalid"):
            raise
        return verbs.inside(name, command, context=context, terminal=terminal)
    propose(name, quiet=bool(command))
    return os.execvp(argv[0], argv)
