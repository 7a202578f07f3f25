"""Files that a sync could not copy because the user cannot read them: which ones, and on which place."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from yurt.errors import YurtError
from yurt.homes import ignores
from yurt.homes.outcomes import Outcome, Skipped, shown
from yurt.homes.output import PARTLY, below
from yurt.homes.places import Pair, Place

SCRIPT = Path(__file__).with_name("unreadable.sh")
TIMEOUT = 600.0
MOST = 200
"""Failed paths that are looked at after one sync."""
MOST_NOTES = 5
"""Skipped files with a warning of their own."""

HOLD, SKIP = "hold", "skip"
"""The values of `unreadable` in homes.yaml: with `skip`, a sync without these files is a good one."""

HINT = (
    "make them readable with `chmod`, leave them out with `yurt home profile --edit`, or skip all that cannot be read "
    "with `yurt home profile --skip-unreadable`"
)


def named(pair: Pair, outcome: Outcome, profile: str) -> Outcome:
    """Return an outcome whose failed paths name the files that cannot be read; with `unreadable: skip`, a good one.

    Of a new folder, Unison names only the folder. Never fails: what cannot be looked at keeps Unison's words.
    """
    failed = list(outcome.failed)
    for place in pair.places:
        with suppress(YurtError):
            failed = _replaced(failed, place, _find(place, [each.path for each in failed[:MOST]], profile))
    outcome = msgspec.structs.replace(outcome, failed=failed)
    if pair.hub.homes.unreadable == SKIP and all(each.unreadable for each in failed):
        notes = [f"skipped '{shown(each.path)}': it {each.why}" for each in failed[:MOST_NOTES]]
        if len(failed) > MOST_NOTES:
            notes.append(f"skipped {len(failed) - MOST_NOTES} more that cannot be read")
        code = 1 if outcome.skipped else 0
        return msgspec.structs.replace(outcome, code=code, warnings=[*outcome.warnings, *notes])
    if any(each.unreadable for each in failed):
        return msgspec.structs.replace(outcome, hint=outcome.hint or HINT)
    return outcome


def _find(place: Place, paths: Sequence[str], profile: str) -> list[str]:
    script = SCRIPT.read_text().replace("@IGNORED@", ignores.read(profile).expression)
    lines = "".join(path.replace("\n", "\1") + "\n" for path in paths)
    answer = place.run(script, place.folder.removeprefix("~/"), stdin=os.fsencode(lines), timeout=TIMEOUT)
    return [below(name) for name in answer.out.split(b"\0")[:-1]]


def _replaced(failed: Sequence[Skipped], place: Place, found: Sequence[str]) -> list[Skipped]:
    """Return failed paths, with those that a place cannot read, and for folders that were copied in part, the files."""
    why = f"cannot be read on {'this machine' if place.here else place.name}: permission denied"
    made: list[Skipped] = []
    for each in failed:
        # Another folder failed for another reason, although it may contain such files, too.
        partly = each.why == PARTLY
        below = [path for path in found if path == each.path or (partly and path.startswith(f"{each.path}/"))]
        made += [Skipped(path, why, unreadable=True) for path in below] or [each]
    return list(dict.fromkeys(made))
