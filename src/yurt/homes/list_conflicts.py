"""home conflicts: show the conflicting versions of files in the homes, and resolve them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import msgspec

from yurt.errors import NotFoundError, RefusedError, UserError
from yurt.homes import conflicts as kept
from yurt.homes import paths as home_paths
from yurt.homes import resolve as resolving
from yurt.homes import versions
from yurt.homes.config import Homes
from yurt.homes.conflicts import Choice, Conflict
from yurt.homes.outcomes import NOT_CONFIRMED, shown
from yurt.homes.versions import HomeVersion
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result


class ShownConflict(msgspec.Struct, frozen=True, kw_only=True):
    """A path that changed on several places since their last sync."""

    path: str
    """Relative to the home."""
    why: str
    """The reason, in the words of Unison."""
    versions: dict[str, HomeVersion]
    """The version of each place, the hub first."""
    deletion: bool = False
    """Whether it did not change on two places, but is part of a large deletion that is not confirmed."""
    modes: bool = False
    """Whether only the modes differ."""
    diffs: list[str] = []
    """The differences between the hub's version and each other one, if paths were given and all are text files."""


class ResolvedConflict(msgspec.Struct, frozen=True, kw_only=True):
    """A conflict that was resolved."""

    path: str
    """Relative to the home."""
    kept: str
    """The place whose version is at the path now."""
    beside: list[str] = []
    """The names of the other versions, if both were kept."""


class HomeConflicts(msgspec.Struct, frozen=True, kw_only=True):
    """The open conflicts of the homes, and those that this command resolved."""

    hub: str
    """The place in the middle."""
    conflicts: list[ShownConflict]
    """The open conflicts."""
    resolved: list[ResolvedConflict] = []
    """Those that this command resolved."""


class Found(Result[HomeConflicts], frozen=True, kw_only=True):
    """The conflicts, and what `resolve` needs to resolve them."""

    homes: Homes
    open: list[Conflict]


def find(paths: Sequence[str] = (), *, diffs: bool = False, watch: Watch = unwatched) -> Found:
    """Return the conflicts of the last syncs that both places still have, or those of some paths.

    With `diffs`, also the differences of text files. A place that cannot be reached is a warning.
    """
    homes = home_paths.homes()
    watch(Event("looking at both versions"))
    known, errors = kept.find(homes)
    some = kept.chosen(known, [home_paths.relative(path, homes) for path in paths])
    readable = [_shown(each, diff(homes, each) if diffs else []) for each in some]
    return Found(
        kind="home-conflicts",
        data=HomeConflicts(hub=homes.hub, conflicts=readable),
        warnings=[error.message for error in errors],
        homes=homes,
        open=some,
    )


def diff(homes: Homes, conflict: Conflict) -> list[str]:
    """Return the differences between the hub's version and each other one; nothing for what is not text."""
    places = {place.name: place for place in home_paths.places(homes)}
    found = []
    for name, version in conflict.versions.items():
        if name != conflict.hub and version.kind == conflict.versions[conflict.hub].kind == "file":
            with suppress(NotFoundError):
                text = versions.diff(conflict.path, places[conflict.hub], places[name])
                found.append(text.decode(errors="backslashreplace"))
    return found


def choices(found: Found, *, keep: str = "", newer: bool = False, both: bool = False) -> list[Choice]:
    """Return how to resolve the conflicts by a rule. UserError if the place is unknown or has no part in any."""
    if keep and keep not in found.homes.names:
        names = ", ".join(found.homes.names)
        raise UserError(f"'{keep}' is not one of the places in sync", code="usage", hint=f"the places are: {names}")
    if keep:
        made = kept.keep(found.open, keep)
    else:
        made = kept.both(found.open) if both else kept.newer(found.open) if newer else []
    if keep and found.open and not made:
        others = sorted({name for each in found.open for name in each.versions})
        raise UserError(
            f"{keep} has a part in none of these conflicts: its version is already on {found.homes.hub}",
            code="usage",
            hint=f"name one of: {', '.join(others)}",
        )
    return made


def resolve(found: Found, chosen: Sequence[Choice], *, watch: Watch = unwatched) -> Result[HomeConflicts]:
    """Keep the chosen versions on all places; the others go to dated backups. Only these paths are synced.

    The exit code is 1 if a conflict could not be resolved; a warning says why. RefusedError: a place with one of the
    versions cannot be reached; nothing was changed.
    """
    for each in chosen:
        if each.conflict.unknown:
            raise RefusedError(
                f"'{each.conflict.path}' is not resolved: {each.conflict.unknown[0]} cannot be reached",
                code="site-refused",
                hint="try again when it can",
            )
    done = resolving.resolve(found.homes, chosen, watch=watch)
    resolved: dict[str, ResolvedConflict] = {}
    warnings = []
    for each in chosen:
        path = each.conflict.path
        problem = done.problem(each.conflict)
        if problem:
            warnings.append(f"'{shown(path)}' is not resolved: {problem}")
        else:
            beside = [shown(name) for name in done.beside.get(path, ())]
            resolved[path] = ResolvedConflict(path=shown(path), kept=each.keep, beside=beside)
    left = [_shown(each, []) for each in found.open if each.path not in resolved]
    return Result(
        kind="home-conflicts",
        data=HomeConflicts(hub=found.homes.hub, conflicts=left, resolved=list(resolved.values())),
        warnings=warnings,
        exit_code=1 if warnings else 0,
    )


def _shown(conflict: Conflict, diffs: list[str]) -> ShownConflict:
    safe = {
        place: msgspec.structs.replace(each, target=shown(each.target)) for place, each in conflict.versions.items()
    }
    return ShownConflict(
        path=shown(conflict.path),
        why=conflict.why,
        versions=safe,
        deletion=conflict.why == NOT_CONFIRMED,
        modes=conflict.modes,
        diffs=diffs,
    )
