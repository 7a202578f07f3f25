"""`yurt dev code [NAME]`: VS Code on the workspace of a dev node."""

from __future__ import annotations

import shlex
import subprocess

import click

from yurt.cli import app, render
from yurt.cli.app import verb
from yurt.dev.names import dev_names


@verb(examples=["yurt dev code", "yurt dev code paper"], context_help="")
@click.argument("name", metavar="[NAME]", required=False, default="default", shell_complete=dev_names)
def code(name: str) -> int:
    """Open VS Code on the workspace of a dev node.

    Prints the command if this machine has no `code`. VS Code needs its extension Remote - SSH, and yurt's ssh
    configuration in ~/.ssh/config, which is proposed.
    """
    from yurt.cli.progress import watching_late
    from yurt.dev import ssh as verbs
    from yurt.dev.include_command import propose

    with watching_late() as watch:
        found = verbs.editor(name, context=app.current().context, watch=watch)
    propose(name)
    if found.data.installed and not app.current().json:
        return subprocess.call(found.data.command)
    return render.result(found, lambda: print(shlex.join(found.data.command)), requested=True)
