"""home profile: the Unison profile of the homes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from yurt.homes import config, profile
from yurt.homes import paths as home_paths
from yurt.homes.config import Homes
from yurt.homes.places import Place
from yurt.homes.unreadable import HOLD, SKIP
from yurt.model.result import Result


class HomeProfile(msgspec.Struct, frozen=True, kw_only=True):
    """The profile: where it is, and its text with the current part of yurt."""

    place: str
    """The place on which Unison runs."""
    path: str
    """Where the profile is on that place."""
    text: str
    """Bytes that are not UTF-8 are replaced."""
    changed: bool = False
    """Whether `--edit` changed it."""


def show() -> Result[HomeProfile]:
    """Return the profile of the place on which Unison runs. Without homes in sync, the one that yurt would write."""
    place, path, text = _read()
    return _result(place, path, profile.merged(text))


def edit(editor: Callable[[Path], None]) -> Result[HomeProfile]:
    """Let the user edit the profile, and bring yurt's part up to date. UserError: yurt's two lines are broken.

    A profile on a login host is edited as a copy; another change in the meantime is lost.
    """
    import tempfile

    place, path, text = _read()
    before = profile.merged(text)
    with tempfile.TemporaryDirectory(prefix="yurt-") as folder:  # a private folder
        file = Path(folder) / f"{place.homes.profile}.prf"
        file.touch(mode=0o600)
        file.write_bytes(before)
        editor(file)
        after = file.read_bytes()
    merged = profile.merged(after)
    if merged != text:
        profile.write(place, merged)
    return _result(place, path, merged, changed=merged != before)


def skip_unreadable(skip: bool) -> Result[HomeProfile]:
    """Set whether syncs skip files that cannot be read, with a warning, instead of failing; return the profile."""
    config.save(msgspec.structs.replace(home_paths.homes(), unreadable=SKIP if skip else HOLD))
    return show()


def _read() -> tuple[Place, str, bytes]:
    homes = config.load() or Homes()
    place = Place(profile.client_of(homes), homes)
    path, text = profile.read(place)
    return place, path, text


def _result(place: Place, path: str, text: bytes, *, changed: bool = False) -> Result[HomeProfile]:
    shown = text.decode(errors="replace")
    where = path.encode(errors="surrogateescape").decode(errors="backslashreplace")
    return Result(kind="home-profile", data=HomeProfile(place=place.name, path=where, text=shown, changed=changed))
