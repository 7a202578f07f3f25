"""`yurt data …`: files on contexts. Each command has a module of its own, imported when it is called."""

from __future__ import annotations

import click

from yurt.cli.app import Group

COMMANDS: dict[str, tuple[str, str]] = {
    "put": ("yurt.storage.data_put:put_command", "Copy files to a context, or between contexts."),
    "get": ("yurt.storage.data_get:get_command", "Copy a file or folder of a context to this machine."),
    "ls": ("yurt.storage.data_ls:ls_command", "List files on a context."),
    "rm": ("yurt.storage.data_rm:rm_command", "Remove files from a context."),
}


@click.group(
    cls=Group,
    lazy=COMMANDS,
    examples=["yurt data put cifar project:datasets/cifar", "yurt data ls project:", "yurt data get project:model.pt"],
)
def data() -> None:
    """Copy files to and from contexts, list and remove them.

    A place is TIER:PATH on the current context, CONTEXT:TIER:PATH or CONTEXT:/PATH. `yurt storage` lists the tiers.
    Files that did not change are not sent again, and an interrupted transfer continues.
    """
