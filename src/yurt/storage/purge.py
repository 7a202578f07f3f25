"""Which runs a site deletes next: those whose folders are on a tier with a purge rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from yurt.model.storage import TierPlace
from yurt.storage.purge_dates import DAY, is_gone, is_saved, may_have_results
from yurt.storage.tiers import of_path
from yurt.store import Entry, Store


class Purged(msgspec.Struct, frozen=True, kw_only=True):
    """A finished run whose folder the site deletes."""

    run: str
    name: str = ""
    """The user's name of the run."""
    tier: str
    """The name of the tier with its folder."""
    at: float
    """When, at the earliest: so many days after the run ended."""
    saved: bool = False
    """Whether nothing is lost then: the results were fetched or kept, or there are none, according to this machine."""


def upcoming(store: Store, entries: Iterable[Entry], tiers: Sequence[TierPlace], now: float) -> list[Purged]:
    """Return the finished runs with results that are still there and will be deleted, the next one first."""
    found = []
    for entry in entries:
        run, status = entry.run, entry.status
        tier = of_path(tiers, run.folder) if run.folder and status.final and not run.sweep else None
        if tier is None or tier.purge_days is None:
            continue
        at = (status.ended or run.created) + tier.purge_days * DAY
        if at > now and may_have_results(entry) and not is_gone(store, run.id):
            found.append(Purged(run=run.id, name=run.name, tier=tier.name, at=at, saved=is_saved(store, entry)))
    return sorted(found, key=lambda each: each.at)
