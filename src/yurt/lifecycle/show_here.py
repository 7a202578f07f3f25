"""What this machine has recorded about a run, for `show`."""

from __future__ import annotations

import os

import msgspec

from yurt.store import Entry, Mirrored, Store
from yurt.store.tracked import Tracked


class Here(msgspec.Struct, frozen=True, kw_only=True):
    """What this machine has recorded about a run, beyond the data that all machines share."""

    submitted: float | None
    refreshed_at: float | None
    """When its site was last queried."""
    folder_seen_at: float | None
    """When its folder was last inspected."""
    removed_at: float | None
    """When `prune` removed its folder from its site."""
    copies: list[str]
    """Local folders with its fetched results."""
    kept: Mirrored | None
    tracked: Tracked | None
    """When and where it was sent to MLflow; None if it is not tracked."""


def here(store: Store, entry: Entry, *, folder_seen_at: float | None = None, kept: Mirrored | None = None) -> Here:
    """Return what this machine has recorded. `kept`: what it has saved of the run."""
    run = entry.run.id
    return Here(
        submitted=entry.status.submitted,
        refreshed_at=store.refreshed_at(entry.run.context),
        folder_seen_at=folder_seen_at,
        removed_at=store.gone_at(run),
        copies=[_path(copy.target) for copy in store.copies(run) if os.path.isdir(copy.target)],
        kept=kept,
        tracked=store.tracked(entry.run.sweep or run),
    )


def _path(path: bytes) -> str:
    return path.decode(errors="backslashreplace")
