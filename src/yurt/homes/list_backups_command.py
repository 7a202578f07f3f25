"""`yurt home backups [PATH…]`: the versions that syncs of the homes replaced or deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from yurt.cli import render
from yurt.cli.app import verb
from yurt.cli.listing import listing
from yurt.cli.option_types import Number

if TYPE_CHECKING:
    from yurt.homes.list_backups import HomeBackups

EXAMPLES = [
    "yurt home backups",
    "yurt home backups project/notes.txt",
    "yurt home backups --at yesterday --place alpha",
]


@verb(examples=EXAMPLES, context_help="")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--at", metavar="WHEN", default=None, help="Only backups before a time: 14:30, 2026-11-16, '2h ago'.")
@click.option("--place", "places", metavar="PLACE", multiple=True, help="Only this place; may be repeated.")
@click.option("-n", "--limit", metavar="N", type=Number(1), default=50, show_default=True, help="Show at most N.")
def backups(paths: tuple[str, ...], at: str | None, places: tuple[str, ...], limit: int) -> int:
    """List the versions that syncs replaced or deleted.

    The newest are first. PATH is a file or a folder, relative to the home. A sync keeps each version that it replaces
    or deletes on the place where it was. Bring one back with `yurt home restore PATH`.
    """
    from yurt.cli.progress import watching_late
    from yurt.homes import list_backups as verbs

    with watching_late() as watch:
        found = verbs.backups(paths, at=at, only=places, limit=limit, watch=watch)
    return render.result(found, lambda: _print(found.data), requested=True)


def _print(found: HomeBackups) -> None:
    if not found.backups:
        print("no backups")
        return
    columns = ["when", "place", "size", "changed", "path"]
    rows = [
        [
            render.moment(each.time),
            each.place,
            "link" if each.kind == "link" else render.amount(each.size),
            render.moment(each.modified),
            each.path,
        ]
        for each in found.backups
    ]
    listing(columns, rows, styles=[""] * len(rows), styled="", drops=["changed"], shrinks=["path"], numbers=["size"])
    if found.more:
        print("there are more; see them with --limit, or name a PATH")
