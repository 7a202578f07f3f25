"""`yurt data ls [PLACE]`: list files on a context."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from yurt.cli import app, render
from yurt.cli.app import verb

if TYPE_CHECKING:
    from yurt.storage.data_ls import DataListed


@verb(examples=["yurt data ls", "yurt data ls project:datasets", "yurt data ls alpha:scratch: --json"])
@click.argument("place", metavar="[PLACE]", required=False, default="")
def ls(place: str) -> int:
    """List files on a context.

    Shows what is in the folder PLACE, with the number and the size of all files below each folder; by default in the
    tier `project`.
    """
    from yurt.cli.progress import watching_late
    from yurt.storage import data_ls as verbs

    with watching_late() as watch:
        found = verbs.ls(place, context=app.current().context, watch=watch)
    return render.result(found, lambda: _print(found.data), requested=True)


def _print(found: DataListed) -> None:
    from yurt.cli.listing import listing

    if not found.entries:
        print(render.plain(f"{found.place} is empty"))
        return
    rows = [
        [
            each.name + ("/" if each.kind == "folder" else ""),
            each.kind,
            f"{each.files:,}",
            render.amount(each.size),
            render.moment(each.modified) if each.modified else "",
        ]
        for each in found.entries
    ]
    listing(
        ["name", "kind", "files", "size", "modified"],
        rows,
        styles=[""] * len(rows),
        styled="name",
        shrinks=["name"],
        drops=["kind", "modified", "files"],
        numbers=["files", "size"],
    )
