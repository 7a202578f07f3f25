"""Lets a race go on whose winner lost its node, as often as `--retries` allows: its candidates are submitted again.

A restart on the winner's site would wait for that site, though another one may be free. So, in this order, and each
step safe to repeat: the winner can never start again, and its lost start has ended (`goes_elsewhere`); its claim is
ended; new candidates take the place of the old ones in the index (`go_on`). A winner that left checkpoints is restarted
where they are. Tasks of sweeps are always restarted on their site.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from yurt.backends.kinds import kind_of
from yurt.lifecycle.race.release import as_new, current_plans
from yurt.lifecycle.race.submit import send
from yurt.model.progress import unwatched
from yurt.model.race import ONLY
from yurt.model.run import Plan, Race, Status
from yurt.model.state import RACED_ON
from yurt.sites import connect
from yurt.store import Store

if TYPE_CHECKING:
    from yurt.backends.base import Claims

WHO = "its node failed"
"""The text in ITEM.N.dead."""

WAITS = "its node failed; the race goes on as soon as it is certain that the failed start has ended"


def goes_elsewhere(store: Store, plan: Plan, claims: Claims) -> bool:
    """Whether a candidate whose start was lost does not start again on its own site, whose claims these are.

    Its status then says what happens instead. The caller would submit the next start otherwise.
    """
    entry = store.get(plan.run.id)
    if entry is None or not _may(store, plan, entry.status):
        return False
    found = claims.end_lost(plan.run.folder, entry.status.start, plan.lease)
    if found == "keeps":
        return False
    store.change([plan.run.id], lambda _run, status: _over(status) if found == "over" else _waiting(status))
    return True


def _may(store: Store, plan: Plan, status: Status) -> bool:
    """Whether a race may go on without a candidate, as far as this machine knows."""
    run, policy = plan.run, plan.run.restart_policy
    if run.tasks or status.start < 2 or policy.max_requeues or policy.retry_errors or kind_of(run.context_type).here:
        return False
    others = [each.status for each in store.several(store.candidates(run.race)) if each.run.id != run.id]
    # A candidate that is being withdrawn could win the next round in its last moment.
    return bool(others) and all(each.final for each in others) and _left(plan, status) >= 0


def _left(plan: Plan, status: Status) -> int:
    """Return how many lost starts new candidates may have: all starts of a race count."""
    return plan.run.restart_policy.retries - (status.start - 1)


def _waiting(status: Status) -> Status:
    return status if status.final else msgspec.structs.replace(status, reason=WAITS)


def _over(status: Status) -> Status:
    if status.final or status.cancel_requested:
        return status
    return msgspec.structs.replace(
        status, state="node_failed", reason=RACED_ON, ended=time.time(), missing_since=None, unsure_since=None
    )


def go_on(store: Store, race: Race, lost: Plan, status: Status) -> list[str]:
    """Submit a race again whose holder has ended for good; return warnings. The caller has the claim of the race.

    YurtError: the arbiter does not respond, and nothing has changed; repeat it.
    """
    if not connect.responding_backend(race.arbiter).claims.give_up(race.folder, ONLY, lost.run.id, WHO):
        return []
    members = current_plans(store, race.id)
    over = all(entry.status.final for entry, _plan in members)
    reached = [plan for entry, plan in members if not store.draft(entry.run.id)]
    made = [_again(plan, _left(lost, status)) for plan in reached] if over else []
    if not store.add_candidates(race.id, made, Status(), freed=[ONLY]):
        return []
    sent = send(store, [plan.run.context for plan in made], unwatched)
    names = {plan.run.id: plan.run.context for plan in made}
    return [f"{names.get(run, run)} rejected the race: {error.message}" for run, error in sent.refused.items()]


def _again(plan: Plan, retries: int) -> Plan:
    """Return the plan of a new candidate in the place of an old one."""
    fresh = as_new(plan.later())
    policy = msgspec.structs.replace(fresh.run.restart_policy, retries=retries)
    return msgspec.structs.replace(fresh, run=msgspec.structs.replace(fresh.run, restart_policy=policy))
