"""Resolves conflicts: lets Unison copy the version that is kept. The others go to the dated backups."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from yurt.errors import RefusedError
from yurt.homes import rounds
from yurt.homes.config import Homes
from yurt.homes.conflicts import Choice, Conflict
from yurt.homes.outcomes import Outcome
from yurt.homes.places import all_places
from yurt.homes.sync import parts
from yurt.model.progress import Event, Watch, unwatched

LINKS = Path(__file__).with_name("links.sh")
SCRIPT = Path(__file__).with_name("beside.sh")
TIMEOUT = 1800.0
MODES = """\
cd -- "$1" && shift || exit
while [ $# -gt 0 ]; do
  if leads_away "$2" || [ -h "./$2" ] || ! chmod "$1" "./$2"; then exit 1; fi
  shift 2
done
"""
LONGEST_NAME = 255
"""Bytes of a file name."""
LONGEST_SUFFIX = 16
"""Characters; what is longer after a dot is part of the name."""


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """What was done: the outcomes of the syncs, and the names of versions that were kept beside others."""

    outcomes: list[Outcome]
    beside: dict[str, list[str]]
    """By path: the new names."""

    def problem(self, conflict: Conflict) -> str:
        """Return why a conflict is still there; empty if it is resolved."""
        for each in self.outcomes:
            if conflict.path not in each.paths or each.spoke not in conflict.versions:
                continue
            if each.code == 3:
                return each.problem or "the sync failed"
            for left in (*each.skipped, *each.failed):
                if left.path == conflict.path:
                    return left.why
        return ""


def resolve(homes: Homes, choices: Sequence[Choice], *, watch: Watch = unwatched) -> Resolved:
    """Resolve conflicts. Only their paths are synced. Safe to repeat.

    Where only the modes of folders differ, these are changed: Unison would sync all that is in the folders.

    First the hub receives the versions of spokes that are kept, then the other spokes receive those of the hub.
    Places that were not in conflict are synced too, but keep what they have changed since.
    """
    watch(Event("resolving conflicts"))
    folders = [each for each in choices if each.conflict.modes]
    _change_modes(homes, folders)
    choices = [each for each in choices if each not in folders]
    made = _beside(homes, [each for each in choices if each.both])
    outcomes: list[Outcome] = []
    spokes = [name for name in homes.names if name != homes.hub]
    for spoke in spokes:
        kept = [each for each in choices if each.keep == spoke]
        outcomes += _keep(homes, spoke, kept, watch, keep=spoke)
    for spoke in spokes:
        lost = [each for each in choices if each.keep != spoke and spoke in each.conflict.versions]
        new = list(made.get(spoke, {}).values())
        outcomes += _keep(homes, spoke, lost, watch, keep=homes.hub, new=new)
    for spoke in spokes:
        others = [each for each in choices if spoke not in each.conflict.versions and each.keep != homes.hub]
        new = [name for place, names in made.items() if place != spoke for name in names.values()]
        outcomes += _run(homes, spoke, [*_paths(others), *new], _deleting(others), watch)
    beside: dict[str, list[str]] = {}
    for names in made.values():
        for path, name in names.items():
            beside.setdefault(path, []).append(name)
    return Resolved(outcomes=outcomes, beside=beside)


def _change_modes(homes: Homes, choices: Sequence[Choice]) -> None:
    """Give the modes that are kept to the other places, in one operation per place."""
    for place in all_places(homes):
        mine = [each.conflict for each in choices if each.keep != place.name and place.name in each.conflict.versions]
        modes = {each.conflict.path: each.conflict.versions[each.keep].mode for each in choices}
        words = [word for each in mine for word in (modes[each.path], each.path)]
        if words:
            answer = place.run(LINKS.read_text() + MODES, place.root, *words, timeout=TIMEOUT)
            if answer.code:
                said = answer.errors or "no error message"
                raise RefusedError(f"cannot change modes on {place.name}: {said}", code="site-refused")


def _paths(choices: Sequence[Choice]) -> list[str]:
    return [each.conflict.path for each in choices]


def _deleting(choices: Sequence[Choice]) -> list[str]:
    """Return Unison's argument without which it refuses a path that is deleted on one side and that it is limited to.

    The user has chosen between the deletion and the other version.
    """
    deleted = any(version.kind == "deleted" for each in choices for version in each.conflict.versions.values())
    return ["-confirmbigdel=false"] if deleted else []


def _keep(
    homes: Homes, spoke: str, choices: Sequence[Choice], watch: Watch, *, keep: str, new: Sequence[str] = ()
) -> list[Outcome]:
    """Copy the versions of one of the places of a pair over those of the other one, and new paths both ways."""
    # With -prefer, Unison would copy what is no conflict for it, such as a large deletion, the other way.
    kept = _run(homes, spoke, _paths(choices), ["-force", keep, *_deleting(choices)], watch)
    return kept + _run(homes, spoke, new, [], watch)


def _run(homes: Homes, spoke: str, paths: Sequence[str], arguments: Sequence[str], watch: Watch) -> list[Outcome]:
    found: list[Outcome] = []
    for some in parts(paths):
        words = [word for path in some for word in ("-path", path)]
        found += rounds.run(homes, [spoke], watch=watch, extra_arguments=[*words, *arguments]).outcomes
    return found


def _beside(homes: Homes, choices: Sequence[Choice]) -> dict[str, dict[str, str]]:
    """Copy the versions that are not kept to names beside them, in one operation per place.

    Return by place and path the new names.
    """
    found: dict[str, dict[str, str]] = {}
    for place in all_places(homes):
        paths = [each.conflict.path for each in choices if _differs(each, place.name)]
        if not paths:
            continue
        words = [word for path in paths for word in (path, *name_beside(path, place.name, time.time()))]
        answer = place.run(LINKS.read_text() + SCRIPT.read_text(), place.root, *words, timeout=TIMEOUT)
        if answer.code:
            said = answer.errors or "no error message"
            raise RefusedError(f"cannot copy files on {place.name}: {said}", code="site-refused")
        names = [os.fsdecode(name) for name in answer.out.split(b"\0")[:-1]]
        found[place.name] = dict(zip(paths, names, strict=True))
    return found


def _differs(choice: Choice, place: str) -> bool:
    """Whether a place has a version that is not kept, and that no place before it has."""
    versions = choice.conflict.versions
    mine = versions.get(place)
    if mine is None or place == choice.keep or mine.kind in ("deleted", "unknown"):
        return False
    before = [*versions][: [*versions].index(place)]
    # Two folders with one mode may have different files.
    return mine.kind == "folder" or not any(versions[each].same(mine) for each in (*before, choice.keep))


def name_beside(path: str, place: str, now: float) -> tuple[str, str]:
    """Return the name for another version of a file, in two parts: `report.alpha-20261117` and `.txt`."""
    folder, slash, name = path.rpartition("/")
    end = Path(name).suffix if len(Path(name).suffix) <= LONGEST_SUFFIX else ""
    stem = name.removesuffix(end) if end else name
    if stem.endswith(".tar"):
        stem, end = stem.removesuffix(".tar"), f".tar{end}"
    mark = f".{place}-{time.strftime('%Y%m%d', time.localtime(now))}"
    while len(os.fsencode(f"{stem}{mark}-99{end}")) > LONGEST_NAME and stem:
        stem = stem[:-1]
    return f"{folder}{slash}{stem}{mark}", end
