"""home backups: list the versions that syncs of the homes replaced or deleted."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

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
