"""home restore: bring a version from the dated backups back."""

from __future__ import annotations

import msgspec

from yurt.homes import backups
from yurt.homes import paths as home_paths
from yurt.homes.backups import HomeRestored
from yurt.homes.outcomes import shown
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result


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
