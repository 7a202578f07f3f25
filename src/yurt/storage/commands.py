"""`yurt storage …`: storage tiers. Each command has a module of its own, imported when it is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from yurt.cli.app import Group, context_names

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS: dict[str, tuple[str, str]] = {
    "show": ("yurt.storage.storage:show_command", "Show storage tiers, how full they are, and what expires."),
    "keep": ("yurt.storage.keep:keep_command", "Copy results to a storage tier that is not purged."),
}

EXAMPLES = ["yurt storage", "yurt storage alpha beta", "yurt storage keep x7q4z", "yurt storage --json"]


class Storage(Group):
    """The group `storage`: without a command, other words are contexts to show."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or args[0] not in (*COMMANDS, "--help", "-h"):
            args = ["show", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a command, or a context."""
        from click.shell_completion import CompletionItem

        names = context_names(ctx, click.Argument(["names"]), incomplete)
        return [*super().shell_complete(ctx, incomplete), *map(CompletionItem, names)]


@click.group(cls=Storage, lazy=COMMANDS, examples=EXAMPLES, subcommand_metavar="[COMMAND] [ARGS]...")
def storage() -> None:
    """Show storage tiers, and keep what would expire.

    Short for `yurt storage show [CONTEXT]...`: `yurt storage [CONTEXT]...`.
    """
