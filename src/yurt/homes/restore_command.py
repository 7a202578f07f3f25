"""`yurt home restore PATH`: bring a version from the backups of the homes back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from yurt.cli import render
from yurt.cli.app import verb

if TYPE_CHECKING:
    from yurt.homes.backups import HomeRestored

EXAMPLES = [
    "yurt home restore project/notes.txt",
    "yurt home restore project --at 14:30",
    "yurt home restore .bashrc --at '2 days ago' --place alpha",
]


@verb(examples=EXAMPLES, context_help="")
@click.argument("path", metavar="PATH")
@click.option(
    "--at", metavar="WHEN", default=None, help="The newest backup before a time: 14:30, 2026-11-16, '2h ago'."
)
@click.option("--place", metavar="PLACE", default="", help="The place with the backup; by default that of the newest.")
def restore(path: str, at: str | None, place: str) -> int:
    """Bring a version from the backups back.

    PATH is a file, a link or a folder, relative to the home. It is restored on the place where the sync replaced or
    deleted it. What is there now goes to a backup first. In a folder that exists, files that the backup does not have
    stay. The next `yurt home sync` copies the restored version to the other places.
    """
    from yurt.cli.progress import watching_late
    from yurt.homes import restore as verbs

    with watching_late() as watch:
        found = verbs.restore(path, at=at, place=place, watch=watch)
    return render.result(found, lambda: _print(found.data))


def _print(done: HomeRestored) -> None:
    files = f", {render.count(done.files, 'file')}" if done.files != 1 else ""
    print(render.plain(f"restored '{done.path}' on {done.place} from the backup of {render.moment(done.time)}{files}"))
    if done.replaced:
        print("the version that it replaced is in a new backup")
    print("`yurt home sync` copies it to the other places")
