"""home restore: bring a version from the dated backups back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from yurt.cli import render
from yurt.cli.declare import argument, option, verb
from yurt.homes import backups
from yurt.homes import paths as home_paths
from yurt.homes.backups import HomeRestored
from yurt.homes.outcomes import shown
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result

if TYPE_CHECKING:
    from yurt.homes.backups import HomeRestored


def restore(path: str, *, at: str | None = None, place: str = "", watch: Watch = unwatched) -> Result[HomeRestored]:
    """Restore the newest backup of a file, link or folder, or the newest before a time, on the place that has it.

    What is there now goes to a new dated backup first. The next sync copies the restored version to the other places.
    """
    homes = home_paths.homes()
    wanted = home_paths.relative(path, homes)
    watch(Event("looking for the backup"))
    found, dated = backups.newest(
        home_paths.places(homes, [place] if place else ()), wanted, until=home_paths.until(at)
    )
    watch(Event(f"restoring on {found.name}"))
    done = backups.restore(found, dated, wanted)
    return Result(kind="home-restored", data=msgspec.structs.replace(done, path=shown(done.path)))


EXAMPLES = [
    "yurt home restore project/notes.txt",
    "yurt home restore project --at 14:30",
    "yurt home restore .bashrc --at '2 days ago' --place alpha",
]


@verb(examples=EXAMPLES, context_help="")
@argument("path", metavar="PATH")
@option("--at", metavar="WHEN", default=None, help="The newest backup before a time: 14:30, 2026-11-16, '2h ago'.")
@option("--place", metavar="PLACE", default="", help="The place with the backup; by default that of the newest.")
def restore_command(path: str, at: str | None, place: str) -> int:
    """Bring a version from the backups back.

    PATH is a file, a link or a folder, relative to the home. It is restored on the place where the sync replaced or
    deleted it. What is there now goes to a backup first. In a folder that exists, files that the backup does not have
    stay. The next `yurt home sync` copies the restored version to the other places.
    """
    from yurt.cli.progress import watching_late

    with watching_late() as watch:
        found = restore(path, at=at, place=place, watch=watch)
    return render.result(found, lambda: _print(found.data))


def _print(done: HomeRestored) -> None:
    files = f", {render.count(done.files, 'file')}" if done.files != 1 else ""
    print(render.plain(f"restored '{done.path}' on {done.place} from the backup of {render.moment(done.time)}{files}"))
    if done.replaced:
        print("the version that it replaced is in a new backup")
    print("`yurt home sync` copies it to the other places")
