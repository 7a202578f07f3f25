"""`yurt home …`: homes in sync. Each command has a module of its own, imported when it is called."""

from __future__ import annotations

import click

from yurt.cli.app import Group

COMMANDS: dict[str, tuple[str, str]] = {
    "sync": ("yurt.homes.home_sync:sync_command", "Sync the homes now."),
    "status": ("yurt.homes.status:status_command", "Show when the homes were synced, and conflicts."),
    "conflicts": (
        "yurt.homes.list_conflicts:conflicts_command",
        "Show conflicting versions of files, and resolve them.",
    ),
    "backups": ("yurt.homes.list_backups:backups_command", "List the versions that syncs replaced or deleted."),
    "restore": ("yurt.homes.restore:restore_command", "Bring a version from the backups back."),
    "profile": (
        "yurt.homes.change_profile:profile_command",
        "Show or edit the Unison profile: which files to sync, and how.",
    ),
    "install": ("yurt.homes.install_command_line:install_command", "Install the command home_sync on a login host."),
}


@click.group(
    cls=Group,
    lazy=COMMANDS,
    examples=["yurt home sync alpha beta", "yurt home status", "yurt home conflicts"],
    context_help="",
)
def home() -> None:
    """Keep your homes on several sites in sync.

    Unison compares the homes and copies changes both ways. In the middle is the hub: this machine, with a folder of
    its own, or a login host that reaches the others. Nothing is overwritten if both sides changed: that is a conflict.
    Versions that a sync replaces or deletes go to a backup with a date.
    """
