"""Generates the reference page of commands: an overview, then the help of each command."""

from __future__ import annotations

import click

from yurt.cli.app import every_command
from yurt.cli.root import root

WIDTH = 80


def page() -> str:
    found = dict(every_command(root))
    parts = ["# Commands\n\n" + _overview(found)]
    for words, command in found.items():
        settings = root.context_settings
        context = click.Context(command, info_name=words, terminal_width=WIDTH, max_content_width=WIDTH, **settings)
        parts.append(f"## {words}\n\n```text\n{command.get_help(context)}\n```\n")
    return "\n".join(parts)


def _overview(found: dict[str, click.Command]) -> str:
    """Return a table with a line for each command, linked to its help."""
    rows = (
        f"| [`{words}`](#{words.replace(' ', '-')}) | {command.get_short_help_str(200)} |\n"
        for words, command in found.items()
        if not isinstance(command, click.Group)
    )
    return f"| command | |\n|---|---|\n{''.join(rows)}"
