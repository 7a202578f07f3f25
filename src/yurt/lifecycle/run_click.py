"""Click's command for `yurt run`."""

from __future__ import annotations

import click

from yurt.cli import app
from yurt.lifecycle import run_mistakes


class Run(app.Verb):
    """The command `run`: an unknown option after a swallowed script is an argument of the script."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = [*args]  # click empties the list
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption:
            from yurt.lifecycle.run import run_command

            run_mistakes.check_unparsed(given, run_command.parameters)
            raise
