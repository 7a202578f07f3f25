"""`yurt dev …`: dev nodes and their workspaces. Each command has a module of its own, imported when it is called."""

from __future__ import annotations

import click

from yurt.cli.app import Group

COMMANDS: dict[str, tuple[str, str]] = {
    "up": ("yurt.cli.dev_up:up", "Start a dev node, or follow the one that there is."),
    "status": ("yurt.cli.dev_status:status", "Show dev nodes, their time left and their backups."),
    "ssh": ("yurt.cli.dev_ssh:ssh", "Open a terminal on a dev node, or run a command there."),
    "code": ("yurt.cli.dev_code:code", "Open VS Code on the workspace of a dev node."),
    "connect": ("yurt.cli.dev_connect:connect", ""),
    "backup": ("yurt.cli.dev_backup:backup", "Back up the workspace of a dev node now."),
    "backups": ("yurt.cli.dev_backups:backups", "List the backups of a workspace, newest first."),
    "restore": ("yurt.cli.dev_restore:restore", "Bring a version of a workspace back, the newest by default."),
    "extend": ("yurt.cli.dev_extend:extend", "Let a dev node run longer, by 2 hours unless TIME is given."),
    "down": ("yurt.cli.dev_down:down", "Back up the workspace, verify the backup, and release the node."),
}


@click.group(cls=Group, lazy=COMMANDS, examples=["yurt dev up --gpus 1 --time 8h", "yurt dev status", "yurt dev down"])
def dev() -> None:
    """Work on a node of your own, with a workspace that is backed up.

    `yurt dev up` allocates a node and restores your workspace on its local disk. The job backs the workspace up every
    30 minutes, and before it ends, also while your laptop is off. The next `yurt dev up` continues on any node.

    NAME is the name of a dev node; without it, `default`. Several can be used at once.
    """
