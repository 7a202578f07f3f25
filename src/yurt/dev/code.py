"""`yurt dev code [NAME]`: VS Code on the workspace of a dev node."""

from __future__ import annotations

import shlex
import subprocess

from yurt.cli import call, render
from yurt.cli.declare import argument, verb
from yurt.dev.include import propose
from yurt.dev.names import dev_names
from yurt.dev.ssh import editor


@verb(examples=["yurt dev code", "yurt dev code paper"], context_help="")
@argument("name", metavar="[NAME]", required=False, default="default", shell_complete=dev_names)
def code_command(name: str) -> int:
    """Open VS Code on the workspace of a dev node.

    Prints the command if this machine has no `code`. VS Code needs its extension Remote - SSH, and yurt's ssh
    configuration in ~/.ssh/config, which is proposed.
    """
    from yurt.cli.progress import watching_late

    with watching_late() as watch:
        found = editor(name, context=call.current().context, watch=watch)
    propose(name)
    if found.data.installed and not call.current().json:
        return subprocess.call(found.data.command)
    return render.result(found, lambda: print(shlex.join(found.data.command)), requested=True)
