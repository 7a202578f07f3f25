"""home backups: list the versions that syncs of the homes replaced or deleted."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from yurt.cli import render
from yurt.cli.declare import argument, option, verb
from yurt.cli.listing import listing
from yurt.cli.values import Number
from yurt.homes import backups as kept
from yurt.homes import paths as home_paths
from yurt.homes.backups import HomeBackup
from yurt.homes.outcomes import shown
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result


class HomeBackups(msgspec.Struct, frozen=True, kw_only=True):
    """Versions that syncs replaced or deleted, newest first."""

    backups: list[HomeBackup]
    """Newest first."""
    more: bool
    """Whether there are more than `--limit` allows."""


def backups(
    paths: Sequence[str] = (),
    *,
    at: str | None = None,
    only: Sequence[str] = (),
    limit: int = 50,
    watch: Watch = unwatched,
) -> Result[HomeBackups]:
    """Read the dated folders of all places, or of those in `only`, in one operation per place.

    A place that cannot be reached is a warning; if none can, its error is raised.
    """
    homes = home_paths.homes()
    places = home_paths.places(homes, only)
    wanted = [home_paths.relative(path, homes) for path in paths]
    watch(Event("reading the backups"))
    found = kept.listed(places, wanted, until=home_paths.until(at), most=limit)
    if len(found.errors) == len(places):
        raise next(iter(found.errors.values()))
    readable = [msgspec.structs.replace(each, path=shown(each.path)) for each in found.backups]
    return Result(
        kind="home-backups",
        data=HomeBackups(backups=readable, more=found.more),
        warnings=[f"the backups on {name} are not listed: {error.message}" for name, error in found.errors.items()],
    )


EXAMPLES = [
    "yurt home backups",
    "yurt home backups project/notes.txt",
    "yurt home backups --at yesterday --place alpha",
]


@verb(examples=EXAMPLES, context_help="")
@argument("paths", nargs=-1, metavar="[PATH]...")
@option("--at", metavar="WHEN", default=None, help="Only backups before a time: 14:30, 2026-11-16, '2h ago'.")
@option("--place", "places", metavar="PLACE", multiple=True, help="Only this place; may be repeated.")
@option("-n", "--limit", metavar="N", type=Number(1), default=50, show_default=True, help="Show at most N.")
def backups_command(paths: tuple[str, ...], at: str | None, places: tuple[str, ...], limit: int) -> int:
    """List the versions that syncs replaced or deleted.

    The newest are first. PATH is a file or a folder, relative to the home. A sync keeps each version that it replaces
    or deletes on the place where it was. Bring one back with `yurt home restore PATH`.
    """
    from yurt.cli.progress import watching_late

    with watching_late() as watch:
        found = backups(paths, at=at, only=places, limit=limit, watch=watch)
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
