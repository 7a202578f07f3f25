"""Files with equal contents and modes, but different times: no conflict for a person, but one for Unison."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from yurt.errors import YurtError
from yurt.homes import versions
from yurt.homes.outcomes import Skipped
from yurt.homes.places import Pair, Place

MOST = 200
"""Paths that are looked at after one sync."""

TOUCH = """\
cd -- "$1" && shift || exit
while [ $# -gt 0 ]; do
  if [ -f "./$2" ] && [ ! -h "./$2" ]; then touch -m -d "@$1" "./$2" || exit; fi
  shift 2
done
"""


def give_one_time(pair: Pair, skipped: Sequence[Skipped]) -> bool:
    """Give the newer time to equal files that a sync skipped; return whether there were any.

    Then Unison finds that they are equal. Never fails: what cannot be looked at stays a conflict.
    """
    paths = [each.path for each in skipped[:MOST]]
    if not paths:
        return False
    hub, spoke = pair.places
    try:
        found, errors = versions.look([hub, spoke], {hub.name: paths, spoke.name: paths})
        if errors:
            return False
        older: dict[str, list[tuple[str, float]]] = {hub.name: [], spoke.name: []}
        for path in paths:
            one, two = found[hub.name][path], found[spoke.name][path]
            if one.kind == "file" and one.same(two) and one.time != two.time:
                older[hub.name if one.time < two.time else spoke.name].append((path, max(one.time, two.time)))
        for place in pair.places:
            _touch(place, older[place.name])
        return any(older.values())
    except (YurtError, OSError, ValueError):  # ValueError: a file vanished while it was looked at
        return False


def _touch(place: Place, files: Sequence[tuple[str, float]]) -> None:
    if place.here:
        for path, at in files:
            os.utime(Path(place.folder) / path, (at, at), follow_symlinks=False)
    elif files:
        place.run(TOUCH, place.root, *(word for path, at in files for word in (f"{at:.6f}", path)))
