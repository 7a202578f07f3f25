"""`yurt data rm PLACE…`: remove files from a context."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from yurt.cli import app, render
from yurt.cli.app import verb

if TYPE_CHECKING:
    from yurt.storage.data_rm import DataRemoved


@verb(examples=["yurt data rm scratch:old", "yurt data rm -y project:a.csv project:b.csv"])
@click.argument("places", nargs=-1, required=True, metavar="PLACE...")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
def rm(places: tuple[str, ...], yes: bool) -> int:
    """Remove files from a context.

    Shows how many files are removed and asks for confirmation. A link is removed, not what it points to. Storage tiers,
    the home and yurt's own folders are never removed; remove runs with `yurt prune`.
    """
    from yurt.cli.progress import watching_late
    from yurt.errors import RefusedError
    from yurt.storage import data_rm as verbs

    now = app.current()
    with watching_late() as watch:
        found = verbs.survey(places, context=now.context, watch=watch)
    if not yes:
        asks = not now.json and sys.stdin.isatty()
        if asks:
            _print(found.data, "")
        if not asks or not click.confirm("permanently remove this?", err=True):
            raise RefusedError(
                "nothing was removed: it was not confirmed", code="not-confirmed", hint="confirm it with `--yes`"
            )
    with watching_late() as watch:
        done = verbs.rm(found.data, places, context=now.context, watch=watch)
    return render.result(done, lambda: _print(done.data, "removed "))


def _print(found: DataRemoved, start: str) -> None:
    for each in found.places:
        files = f"{each.files:,} file{'' if each.files == 1 else 's'}, {render.amount(each.size)}"
        print(render.plain(f"{start}{each.place} ({each.kind}): {files}"))
