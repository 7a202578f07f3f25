"""One round: syncs every pair of hub and spoke, and releases the jobs that waited for it."""

from __future__ import annotations

from collections.abc import Sequence

from yurt.homesync import ledger, places
from yurt.homesync.config import Homes
from yurt.homesync.outcomes import Outcome, Round, Skipped
from yurt.model.progress import Watch, unwatched


def run(
    homes: Homes, only: Sequence[str] = (), *, watch: Watch = unwatched, extra_arguments: Sequence[str] = ()
) -> Round:
    """Sync all pairs, or those of the places in `only`; save the outcomes in the ledger and return them.

    A place that cannot be reached, a lock or another refusal is an Outcome with code 3 and its `problem`; the other
    pairs are synced nevertheless. `extra_arguments` go to Unison as they are; after `-prefer` and `-force`, the name
    of a place stands for its root.
    """
    raise NotImplementedError


__all__ = ["Outcome", "Round", "Skipped", "ledger", "places", "run"]
