"""The guard of a first sync: measures the homes, checks that what is written fits, and asks the user."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from yurt.contexts.fan_out import side_by_side
from yurt.errors import RefusedError, UnreachableError, UserError
from yurt.homes import ignores, quota
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.site_words import whole

if TYPE_CHECKING:
    from yurt.homes.places import Place

SCRIPT = Path(__file__).with_name("survey.sh")
TIMEOUT = 1800.0
"""Seconds to count the files of a large home on a slow disk."""


class Amount(msgspec.Struct, frozen=True):
    """A number of files, and their size in bytes."""

    files: int = 0
    size: int = 0
    weight: int = 0
    """Depends on the names and sizes of the files: folders with different weights are different."""


class Folder(msgspec.Struct, frozen=True):
    """A folder directly in the homes, or, with an empty name, the files directly in the homes."""

    name: str
    places: dict[str, Amount]
    """What each place has of it; a place that does not have it is missing."""


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """What the homes contain that a sync would copy, and how much each place would receive."""

    places: list[str]
    folders: list[Folder]
    """Largest first."""
    at_least: dict[str, Amount]
    """What a first sync certainly writes to each place."""
    at_most: dict[str, Amount]
    """What it writes if the homes have no file in common, except in folders that seem to be equal."""
    room: dict[str, quota.Room] = {}
    warnings: list[str] = []
    unreachable: dict[str, UnreachableError] = {}
    """Places that were left out."""


def check(
    places: Sequence[Place],
    profile: str,
    confirm: Callable[[Survey], bool],
    *,
    optional: Sequence[str] = (),
    watch: Watch = unwatched,
) -> Survey:
    """Measure the homes before their first sync and ask the user. Nothing is changed.

    `profile` is the text of the profile, whose ignore rules apply. `optional` places are left out if they cannot be
    reached. RefusedError: what is written does not fit into the free space or the quota of a place. UserError: the user
    does not agree.
    """
    found = survey(places, profile, optional=optional, watch=watch)
    for name in found.places:
        size = found.at_least[name]
        refused = quota.shortage(name, found.room[name], size.size, size.files)
        if refused is not None:
            raise refused
    if len(found.places) > 1 and not confirm(found):
        raise UserError(
            "nothing was synced: the first sync needs your confirmation", code="not-confirmed", hint="add `--yes`"
        )
    return found


def survey(places: Sequence[Place], profile: str, *, optional: Sequence[str] = (), watch: Watch = unwatched) -> Survey:
    """Count the files of each home, by top-level folder, in one operation per place."""
    ignored = ignores.read(profile)
    script = SCRIPT.read_text().replace("@IGNORED@", ignored.expression)
    answers: dict[str, tuple[dict[str, Amount], quota.Room, int]] = {}
    unreachable: dict[str, UnreachableError] = {}

    def measure(place: Place) -> None:
        mark = f"yurt-{os.urandom(8).hex()}"
        try:
            answer = place.run(script, mark, place.folder.removeprefix("~/"), timeout=TIMEOUT)
        except UnreachableError as error:
            if place.name not in optional:
                raise
            unreachable[place.name] = error
            return
        if answer.code:
            raise RefusedError(
                f"cannot measure the home of {place.name}: {answer.errors or 'no error message'}",
                code="site-refused",
            )
        with place.host.reading():
            sections = _sections(answer.text, mark)
            found = _folders(sections[""]), quota.read(sections), answer.errors.count("Permission denied")
        answers[place.name] = found

    watch(Event("measuring the homes"))
    side_by_side(measure, places)
    names = [place.name for place in places if place.name in answers]
    warnings = [f"the size includes what this rule ignores: {rule}" for rule in ignored.unsupported]
    for name in names:
        if answers[name][2]:
            warnings.append(f"{answers[name][2]} folders on {name} cannot be read; a sync reports them as failed")
    counted = {name: answers[name][0] for name in names}
    most = {name: _at_most(name, counted) for name in names}
    for name in names:
        short = quota.shortage(name, answers[name][1], most[name].size, most[name].files)
        if short is not None:
            warnings.append(f"if the homes have little in common, {short.message}")
    return Survey(
        places=names,
        folders=_table(counted),
        at_least={name: _at_least(name, counted) for name in names},
        at_most=most,
        room={name: answers[name][1] for name in names},
        warnings=warnings,
        unreachable=unreachable,
    )


def _sections(text: str, mark: str) -> dict[str, list[str]]:
    """Return the lines after each line `MARK name`; those before the first under the empty name."""
    found: dict[str, list[str]] = {"": []}
    name = ""
    for line in text.split("\n"):
        if line.startswith(mark):
            name = line.removeprefix(mark).strip()
        if line and not line.startswith(mark):
            found.setdefault(name, []).append(line)
    return found


def _folders(lines: Sequence[str]) -> dict[str, Amount]:
    rows = (line.split(" ", 3) for line in lines)
    return {name: Amount(whole(files), whole(size), whole(weight)) for files, size, weight, name in rows}


Counted = dict[str, dict[str, Amount]]
"""For each place, its top-level folders."""


def _table(counted: Counted) -> list[Folder]:
    names = {name for folders in counted.values() for name in folders}
    table = [
        Folder(name, {place: folders[name] for place, folders in counted.items() if name in folders}) for name in names
    ]
    return sorted(table, key=lambda each: (-max(one.size for one in each.places.values()), each.name))


def _at_least(name: str, counted: Counted) -> Amount:
    """Afterwards each folder is at least as large as the largest of them is now."""
    files = size = 0
    for folder in _table(counted):
        own = folder.places.get(name, Amount())
        files += max(0, max(each.files for each in folder.places.values()) - own.files)
        size += max(0, max(each.size for each in folder.places.values()) - own.size)
    return Amount(files, size)


def _at_most(name: str, counted: Counted) -> Amount:
    files = size = 0
    for folder in _table(counted):
        own = folder.places.get(name)
        others = [each for place, each in folder.places.items() if place != name and each != own]
        different = {each.weight: each for each in others}.values()
        files += sum(each.files for each in different)
        size += sum(each.size for each in different)
    return Amount(files, size)
