"""home status: when each pair of homes was synced, with which result, and what is open."""

from __future__ import annotations

from pathlib import Path

import msgspec

from yurt.cli import render
from yurt.cli.declare import verb
from yurt.config import contexts
from yurt.contexts import folders
from yurt.homes import gate, ledger, pending, places, profile
from yurt.homes.config import Homes
from yurt.homes.home_sync import readable
from yurt.homes.outcomes import NOT_CONFIRMED, Deletion, Outcome
from yurt.homes.paths import homes
from yurt.homes.places import Pair, Place
from yurt.lifecycle import syncing
from yurt.model.context import LOCAL
from yurt.model.result import Result


class PairStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The hub and one place around it."""

    hub: str
    """The place in the middle."""
    place: str
    """The other place."""
    root: str
    """The folder of the place; empty: the home."""
    synced: float | None
    """When the last sync ended with exit code 0."""
    tried: float | None
    """When the last sync ended."""
    code: int | None
    """The exit code of the last sync."""
    problem: str
    """Why the last sync did not succeed, with the first path that was not synced; empty if it did."""
    seconds: float | None
    """How long the last sync took."""
    transferred: int
    """Changes that the last sync copied."""
    conflicts: int
    """Paths with different versions on both sides."""
    deletions: list[Deletion]
    """Large deletions that the last sync did not copy."""
    failed: int
    """Paths that the last sync could not copy."""
    pending: int | None
    """Files of this machine that are new or changed since the last sync; null if it is not in this pair."""
    waiting: list[str]
    """Runs of this machine that wait for a sync of this place."""


class HomeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The homes in sync."""

    hub: str
    """The place in the middle."""
    folder: str
    """The folder of this machine; empty if it is not a place."""
    interval: str
    """The time between two syncs by `yurt agent`; empty: it starts none by itself."""
    pairs: list[PairStatus]
    """One for each place around the hub."""


def status() -> Result[HomeStatus]:
    """Return the last syncs of every pair, from the ledger of this machine, and what is pending; contacts no site.

    UserError: no homes are in sync. The exit code is 1 if a pair has conflicts, its last sync did not succeed, or
    a place is not a context.
    """
    found = homes()
    known = ledger.read()
    open_conflicts = known.conflicts()
    waiting = syncing.waiting(folders.store())
    rules = profile.read(Place(LOCAL.name, found))[1].decode(errors="surrogateescape")
    pairs = []
    for pair in places.pairs(found):
        last, good = known.last(pair.name), known.last_good(pair.name)
        mine = [
            each
            for each in open_conflicts
            if (each.hub, each.spoke) == (pair.hub.name, pair.spoke.name) and each.why != NOT_CONFIRMED
        ]
        pairs.append(
            PairStatus(
                hub=pair.hub.name,
                place=pair.spoke.name,
                root=pair.spoke.folder,
                synced=None if good is None else good.ended,
                tried=None if last is None else last.ended,
                code=None if last is None else last.code,
                problem=gate.problem(last) if last is not None and last.code else "",
                seconds=None if last is None else last.seconds,
                transferred=0 if last is None else last.transferred,
                conflicts=len(mine),
                deletions=[] if last is None else readable(last).deletions,
                failed=0 if last is None else len(last.failed),
                pending=_pending(pair, known.last_reached(pair.name), rules),
                waiting=[run for place in pair.places for run in waiting.get(place.name, ())],
            )
        )
    folder = Place(LOCAL.name, found).folder if LOCAL.name in found.names else ""
    data = HomeStatus(hub=found.hub, folder=folder, interval=found.interval, pairs=pairs)
    warnings = _unknown(found)
    bad = warnings or any(each.conflicts or each.code for each in pairs)
    return Result(kind="home-status", data=data, warnings=warnings, exit_code=int(bool(bad)))


def _unknown(found: Homes) -> list[str]:
    """Return a warning for each place that is not a context."""
    known = contexts.load(contexts.default_file()).contexts
    return [
        f"homes.yaml names '{name}', which is not a context; add it with"
        f" `yurt context add {name} --slurm-url USER@HOST`, or remove it there"
        for name in found.names
        if name != LOCAL.name and name not in known
    ]


def _pending(pair: Pair, last: Outcome | None, rules: str) -> int | None:
    """Return how many files of this machine changed since the last sync of a pair; None if there was none."""
    here = next((place for place in pair.places if place.here), None)
    if here is None or last is None:
        return None
    return pending.changed_here(Path(here.folder), rules, last.ended)


@verb(examples=["yurt home status", "yurt home status --json"], context_help="")
def status_command() -> int:
    """Show when the homes were synced, and conflicts.

    Shows each home with its last good sync and the result of the last one, as recorded on this machine. Pending files
    are those of this machine that are new or changed since; what was deleted, and what changed elsewhere, shows in the
    next sync. Runs that wait for a sync are listed below. The exit code is 1 if there are conflicts, or if the last
    sync of a home did not succeed.
    """

    found = status()
    return render.result(found, lambda: _print(found.data), requested=True)


def _print(found: HomeStatus) -> None:
    folder = f", folder {found.folder}" if found.folder else ""
    print(render.plain(f"hub: {found.hub}{folder}"))
    titles = ["place", "in sync", "last sync", "took", "conflicts", "pending"]
    rows = [
        [
            each.place,
            render.moment(each.synced) or "never",
            _result(each),
            "" if each.seconds is None else f"{each.seconds:.1f} s",
            str(each.conflicts + len(each.deletions)),
            "" if each.pending is None else str(each.pending),
        ]
        for each in found.pairs
    ]
    render.table(titles, rows, folds=["in sync", "last sync"])
    if any(each.conflicts or each.deletions for each in found.pairs):
        print("see the conflicts with `yurt home conflicts`")
    for run in dict.fromkeys(run for each in found.pairs for run in each.waiting):
        print(render.plain(f"run {run} waits for a home sync"))


def _result(each: PairStatus) -> str:
    if each.code is None:
        return ""
    at = f"{render.moment(each.tried)}: " if each.tried and each.tried != each.synced else ""
    if each.code > 2:
        return at + each.problem.removeprefix(f"{each.place}: ")
    words = render.count(each.transferred, "change") if each.transferred else "no changes"
    if each.failed or each.deletions:
        words += f"; {each.problem}"
    return at + words
