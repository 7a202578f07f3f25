"""home status: when each pair of homes was synced, with which result, and what is open."""

from __future__ import annotations

import msgspec

from yurt.homesync import ledger, places
from yurt.homesync.outcomes import Outcome
from yurt.verbs.home_paths import homes
from yurt.verbs.result import Result


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
    """Why the last sync failed, if it did."""
    seconds: float | None
    """How long the last sync took."""
    transferred: int
    """Changes that the last sync copied."""
    conflicts: int
    """Paths with different versions on both sides."""
    failed: int
    """Paths that the last sync could not copy."""


class HomeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The homes in sync."""

    hub: str
    """The place in the middle."""
    folder: str
    """The folder of this machine; empty if it is not a place."""
    interval: str
    """The time between two rounds of `yurt agent once`; empty: it starts none by itself."""
    pairs: list[PairStatus]
    """One for each place around the hub."""


def status() -> Result[HomeStatus]:
    """Return the last syncs of every pair, from the ledger of this machine; contacts no site.

    UserError: no homes are in sync. The exit code is 1 if a pair has conflicts, or its last sync did not succeed.
    """
    found = homes()
    known = ledger.read()
    open_conflicts = known.conflicts()
    pairs = []
    for pair in places.pairs(found):
        last, good = known.last(pair.name), known.last_good(pair.name)
        mine = [each for each in open_conflicts if (each.hub, each.spoke) == (pair.hub.name, pair.spoke.name)]
        pairs.append(
            PairStatus(
                hub=pair.hub.name,
                place=pair.spoke.name,
                root=pair.spoke.folder,
                synced=None if good is None else good.ended,
                tried=None if last is None else last.ended,
                code=None if last is None else last.code,
                problem="" if last is None else last.problem,
                seconds=None if last is None else last.seconds,
                transferred=0 if last is None else last.transferred,
                conflicts=len(mine),
                failed=_failed(last),
            )
        )
    folder = places.Place("local", found).folder if "local" in found.names else ""
    data = HomeStatus(hub=found.hub, folder=folder, interval=found.interval, pairs=pairs)
    return Result(kind="home-status", data=data, exit_code=int(any(each.conflicts or each.code for each in pairs)))


def _failed(last: Outcome | None) -> int:
    return 0 if last is None else len(last.failed)
