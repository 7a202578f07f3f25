"""`yurt dev …`: dev nodes and their workspaces. Each command has a module of its own, imported when it is called."""

from __future__ import annotations

import click

from yurt.cli.app import Group

COMMANDS: dict[str, tuple[str, str]] = {}


@click.group(
    cls=Group, lazy=COMMANDS, examples=["yurt dev up --gpus 1 --time 8h", "yurt dev status", "yurt dev down"]
)
def dev() -> None:
    """Work on a node of your own, with a workspace that is backed up.

    `yurt dev up` allocates a node and restores your workspace on its local disk. The job backs the workspace up every
    30 minutes, and before it ends, also while your laptop is off. The next `yurt dev up` continues on any node.

    NAME is the name of a dev node; without it, `default`. Several can be used at once.
    """
