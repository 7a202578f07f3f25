"""Decides whether a candidate of a race, whose start was lost with its node, starts again on its own site.

A restart there would wait for that site, though another one may be free. So with `--retries` the race goes on without
this candidate: it gets an end, and new candidates follow (race/again.py). One that left checkpoints is restarted where
they are. So are tasks of sweeps, and runs that are restarted for other reasons, too.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from yurt.backends.kinds import kind_of
from yurt.model.run import Plan, Status
from yurt.model.state import RACED_ON
from yurt.store import Store

if TYPE_CHECKING:
    from yurt.backends.base import Claims

WAITS = "its node failed; the race goes on as soon as it is certain that the failed start has ended"


def leaves(store: Store, plan: Plan, claims: Claims) -> bool:
    """Whether a candidate leaves its next start, which is due, to others. `claims`: those of its site.

    Its status then says what happens: it waits until its lost start must have ended, or it has ended for good.
    """
    entry = store.get(plan.run.id)
    if entry is None or not _may(store, plan, entry.status):
        return False
    found = claims.end_lost(plan.run.folder, entry.status.start, plan.lease)
    if found == "keeps":
        return False
    store.change([plan.run.id], lambda _run, status: _over(status) if found == "over" else _waiting(status))
    return True


def left(plan: Plan, status: Status) -> int:
    """Return how many starts of new candidates may be lost: all starts of a race count."""
    return plan.run.restart_policy.retries - (status.start - 1)


def _may(store: Store, plan: Plan, status: Status) -> bool:
    """Whether a race may go on without a candidate, as far as this machine knows."""
    run, policy = plan.run, plan.run.restart_policy
    if run.tasks or status.start < 2 or policy.max_requeues or policy.retry_errors or kind_of(run.context_type).here:
        return False
    others = [each.status for each in store.several(store.candidates(run.race)) if each.run.id != run.id]
    # A candidate that is being withdrawn could win the next round in its last moment.
    return bool(others) and all(each.final for each in others) and left(plan, status) >= 0


def _waiting(status: Status) -> Status:
    return status if status.final else msgspec.structs.replace(status, reason=WAITS)


def _over(status: Status) -> Status:
    if status.final or status.cancel_requested:
        return status
    return msgspec.structs.replace(
        status, state="node_failed", reason=RACED_ON, ended=time.time(), missing_since=None, unsure_since=None
    )
