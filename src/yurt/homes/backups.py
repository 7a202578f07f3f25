"""The dated backups of the homes: the versions that syncs replaced or deleted. Lists and restores them."""

from __future__ import annotations

import calendar
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from yurt.contexts.fan_out import side_by_side
from yurt.errors import NotFoundError, RefusedError, YurtError
from yurt.homes import here
from yurt.homes.places import Place
from yurt.model.site_words import moment, whole

FUNCTIONS = tuple(Path(__file__).with_name(name) for name in ("links.sh", "backups.sh"))
RESTORE = Path(__file__).with_name("restore.sh")
TIMEOUT = 1800.0
"""Seconds to list, restore or remove a large folder on a slow disk."""

FOREVER = 9999_12_31_23_59_59
NOT_THERE, NOT_OURS, LINK_ABOVE = 44, 41, 45
Kind = Literal["file", "folder", "link", "other"]
KINDS: dict[str, Kind] = {"f": "file", "d": "folder", "l": "link"}


class HomeBackup(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a file or link that a sync replaced or deleted."""

    time: float
    """When the sync started."""
    place: str
    """The place that has it."""
    path: str
    """Relative to the home."""
    kind: Kind
    """What it is."""
    size: int
    """In bytes."""
    modified: float
    """When the file was changed last."""
    dated: str
    """The name of the dated folder."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """Backups, newest first, and the errors of the places that could not be asked."""

    backups: list[HomeBackup]
    more: bool = False
    """Whether there are more than were requested."""
    errors: dict[str, YurtError] = {}


class HomeRestored(msgspec.Struct, frozen=True, kw_only=True):
    """A path that was restored."""

    place: str
    """Where it was restored."""
    path: str
    """Relative to the home."""
    time: float
    """The time of the backup."""
    files: int
    """The number of restored files."""
    replaced: str
    """The dated folder that contains what was replaced, if anything was."""


def moment_of(dated: str) -> float:
    """Return the time in the name of a dated folder."""
    return float(calendar.timegm(time.strptime(dated.partition("-")[0], here.STAMP)))


def _number(at: float | None) -> str:
    return str(FOREVER if at is None else time.strftime("%Y%m%d%H%M%S", time.gmtime(at)))


def _functions() -> str:
    return "".join(each.read_text() for each in FUNCTIONS)


def _folder(place: Place) -> str:
    return place.homes.backups.removeprefix("~/")


def listed(places: Sequence[Place], paths: Sequence[str] = (), *, until: float | None = None, most: int = 100) -> Found:
    """Return the newest backups of all places, or those of some paths and of what is below them.

    One operation per place. A place that cannot be asked is in `errors`.
    """
    script = _functions() + 'backups_enter "$1" || exit; shift; backups_list "$@"\n'
    found: list[HomeBackup] = []
    errors: dict[str, YurtError] = {}

    def ask(place: Place) -> None:
        try:
            answer = place.run(script, _folder(place), _number(until), str(most + 1), *paths, timeout=TIMEOUT)
            if answer.code not in (0, NOT_THERE):
                raise _refusal(place, answer.errors)
            with place.host.reading():
                found.extend(_read(place.name, answer.out))
        except YurtError as error:
            errors[place.name] = error

    side_by_side(ask, places)
    found.sort(key=lambda each: (each.path, each.place))
    found.sort(key=lambda each: each.dated, reverse=True)
    return Found(backups=found[:most], more=len(found) > most, errors=errors)


def _read(place: str, out: bytes) -> list[HomeBackup]:
    found = []
    for line in out.split(b"\n")[:-1]:
        kind, size, modified, name = line.split(b" ", 3)
        dated, _slash, path = os.fsdecode(name.replace(b"\x01", b"\n")).partition("/")
        found.append(
            HomeBackup(
                time=moment_of(dated),
                place=place,
                path=path.removeprefix("./"),
                kind=KINDS.get(kind.decode(), "other"),
                size=whole(size.decode()),
                modified=moment(modified.decode()),
                dated=dated,
            )
        )
    return found


def newest(places: Sequence[Place], path: str, *, until: float | None = None) -> tuple[Place, str]:
    """Return the place with the newest backup of a path, and the name of its dated folder.

    NotFoundError if no place has one; the error of a place if one could not be asked and no other has it.
    """
    script = _functions() + 'backups_enter "$1" || exit; backups_find "$2" "$3"\n'
    found: list[tuple[str, Place]] = []
    errors: list[YurtError] = []

    def ask(place: Place) -> None:
        try:
            answer = place.run(script, _folder(place), _number(until), path, timeout=TIMEOUT)
            if answer.code == 0:
                found.append((answer.text.strip(), place))
            elif answer.code != NOT_THERE:
                raise _refusal(place, answer.errors)
        except YurtError as error:
            errors.append(error)

    side_by_side(ask, places)
    if found:
        dated, place = max(found, key=lambda each: each[0])
        return place, dated
    if errors:
        raise errors[0]
    before = "" if until is None else " from before that time"
    raise NotFoundError(
        f"there is no backup of '{path}'{before}",
        code="not-found",
        hint="list all backups with `yurt home backups`; a path is relative to the home",
    )


def restore(place: Place, dated: str, path: str) -> HomeRestored:
    """Restore a file, a link or a folder into the home that it came from.

    What is there now goes to a new dated folder first. A folder that exists keeps the files that the backup does not
    have. The next sync copies the change to the other homes. Safe to repeat.
    """
    new = f"{'-'.join(here.moment())}-restore"
    script = _functions() + RESTORE.read_text()
    answer = place.run(script, _folder(place), place.root, dated, path, new, timeout=TIMEOUT)
    if answer.code == NOT_THERE:
        raise NotFoundError(f"there is no backup of '{path}' in {dated} on {place.name}", code="not-found")
    if answer.code == LINK_ABOVE:
        raise RefusedError(
            f"cannot restore '{path}' on {place.name}: {answer.errors}",
            code="site-refused",
            hint="remove the link, or copy the file from the backup yourself",
        )
    if answer.code:
        raise _refusal(place, answer.errors)
    with place.host.reading():
        files, *saved = answer.text.split()
        return HomeRestored(
            place=place.name, path=path, time=moment_of(dated), files=whole(files), replaced=new if saved else ""
        )


def _refusal(place: Place, errors: str) -> RefusedError:
    said = errors.splitlines()[-1] if errors else "no error message"
    return RefusedError(f"cannot use the backups on {place.name}: {said}", code="site-refused")
