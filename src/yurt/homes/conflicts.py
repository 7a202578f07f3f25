"""Conflicts: paths that changed on two places since their last sync. Finds them and decides which version is kept."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from yurt.errors import NotFoundError, YurtError
from yurt.homes import ledger, versions
from yurt.homes.config import Homes
from yurt.homes.places import all_places
from yurt.homes.versions import UNKNOWN, HomeVersion


class Conflict(msgspec.Struct, frozen=True, kw_only=True):
    """A path of which the hub and at least one other place have different versions."""

    path: str
    hub: str
    why: str
    """Unison's reason."""
    versions: dict[str, HomeVersion]
    """The version of each place in conflict, the hub first."""

    @property
    def newest(self) -> str:
        """The place with the version that was changed last. A deletion has no time, so it is never the newest."""
        known = {place: each for place, each in self.versions.items() if each.kind not in ("deleted", "unknown")}
        return max(known, key=lambda place: known[place].time) if known else self.hub

    @property
    def modes(self) -> bool:
        """Whether only the modes differ: of folders, or of files with the same content."""
        first, *others = self.versions.values()
        same = all((each.kind, each.digest) == (first.kind, first.digest) for each in others)
        return same and (first.kind == "folder" or (first.kind == "file" and bool(first.digest)))

    @property
    def unknown(self) -> list[str]:
        """The places that cannot be reached."""
        return [place for place, each in self.versions.items() if each.kind == "unknown"]


class Choice(msgspec.Struct, frozen=True):
    """How to resolve a conflict: keep the version of a place, and with `both` the others too, under another name."""

    conflict: Conflict
    keep: str
    both: bool = False


def find(homes: Homes) -> tuple[list[Conflict], list[YurtError]]:
    """Return the open conflicts, and the errors of places that cannot be reached.

    They are those of the last syncs, compared again: a path that is the same on both places now is not in conflict.
    """
    known = [each for each in ledger.read().conflicts() if {each.hub, each.spoke} <= set(homes.names)]
    paths: dict[str, list[str]] = {}
    reasons: dict[str, str] = {}
    for each in known:
        reasons.setdefault(each.path, each.why)
        for place in (each.hub, each.spoke):
            if each.path not in paths.setdefault(place, []):
                paths[place].append(each.path)
    if not paths:
        return [], []
    found, errors = versions.look(all_places(homes), paths)
    conflicts = []
    for path in sorted(reasons):
        hub = found[homes.hub].get(path, UNKNOWN)
        spokes = {each.spoke: found[each.spoke][path] for each in known if each.path == path}
        different = {place: version for place, version in spokes.items() if not version.same(hub)}
        if different:
            conflicts.append(
                Conflict(path=path, hub=homes.hub, why=reasons[path], versions={homes.hub: hub, **different})
            )
    return conflicts, errors


def chosen(conflicts: Sequence[Conflict], paths: Sequence[str]) -> list[Conflict]:
    """Return the conflicts of some paths, or below them; all without paths. NotFoundError if a path has none."""
    for path in paths:
        if not any(_below(each.path, path) for each in conflicts):
            raise NotFoundError(
                f"there is no conflict at '{path}'",
                code="not-found",
                hint="list conflicts with `yurt home conflicts`; a path is relative to the home",
            )
    return [each for each in conflicts if not paths or any(_below(each.path, path) for path in paths)]


def _below(path: str, top: str) -> bool:
    return path == top or path.startswith(f"{top}/")


def keep(conflicts: Sequence[Conflict], place: str) -> list[Choice]:
    """Choose the version of a place, for the conflicts that it has a part in."""
    return [Choice(each, place) for each in conflicts if place in each.versions]


def newer(conflicts: Sequence[Conflict]) -> list[Choice]:
    """Choose the version that was changed last, and never a deletion."""
    return [Choice(each, each.newest) for each in conflicts]


def both(conflicts: Sequence[Conflict]) -> list[Choice]:
    """Choose the version of the hub, and the others under another name; of a deletion, the version that is left."""
    found = []
    for each in conflicts:
        left = [place for place, version in each.versions.items() if version.kind != "deleted"]
        kept = each.hub if each.hub in left or not left else left[0]
        found.append(Choice(each, kept, both=len(left) > 1))
    return found
