"""A verb whose words may end with `--` and a command."""

from __future__ import annotations

import click

from yurt.cli import app


class WithDashes(app.Verb):
    """Keeps the first `--`, which click drops if it follows the options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            args = [*args[:at], "--", *args[at:]]
        return super().parse_args(ctx, args)
