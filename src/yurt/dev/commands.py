"""`yurt dev …`: dev nodes and their workspaces. Each command has a module of its own, imported when it is called."""

from __future__ import annotations

import click

from yurt.cli.app import Group

COMMANDS: dict[str, tuple[str, str]] = {
    "up": ("yurt.dev.up:up_command", "Start a dev node, or follow the one that there is."),
    "status": ("yurt.dev.status:status_command", "Show dev nodes, their time left and their backups."),
    "ssh": ("yurt.dev.ssh:ssh_command", "Open a terminal on a dev node, or run a command there."),
    "code": ("yurt.dev.code:code_command", "Open VS Code on the workspace of a dev node."),
    "connect": ("yurt.dev.connect:connect_command", ""),
    "backup": ("yurt.dev.backup:backup_command", "Back up the workspace of a dev node now."),
    "backups": ("yurt.dev.backups:backups_command", "List the backups of a workspace, newest first."),
    "restore": ("yurt.dev.restore:restore_command", "Bring a version of a workspace back, the newest by default."),
    "extend": ("yurt.dev.extend:extend_command", "Let a dev node run longer, by 2 hours unless TIME is given."),
    "down": ("yurt.dev.down:down_command", "Back up the workspace, verify the backup, and release the node."),
}


@click.group(cls=Group, lazy=COMMANDS, examples=["yurt dev up --gpus 1 --time 8h", "yurt dev status", "yurt dev down"])
def dev() -> None:
    """Work on a node of your own, with a workspace that is backed up.

    `yurt dev up` allocates a node and restores your workspace on its local disk. The job backs the workspace up every
    30 minutes, and before it ends, also while your laptop is off. The next `yurt dev up` continues on any node.

    NAME is the name of a dev node; without it, `default`. Several can be used at once.
    """
