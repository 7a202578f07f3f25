"""Lets a race go on whose winner lost its node, as often as `--retries` allows: its candidates are submitted again.

The winner can never start again, and its lost start has ended: see `outbox.lost_start`. So, in this order, and each
step safe to repeat: its claim is ended; new candidates take the place of the old ones in the index, all at once; they
are submitted.
"""

from __future__ import annotations

import msgspec

from yurt.contexts import connect
from yurt.lifecycle.outbox.lost_start import left
from yurt.lifecycle.races.candidates import as_new, current_plans, send
from yurt.model.progress import unwatched
from yurt.model.race import ONLY
from yurt.model.run import Plan, Race, Status
from yurt.store import Store

WHO = "its node failed"
"""The text in ITEM.N.dead."""


def go_on(store: Store, race: Race, lost: Plan, status: Status) -> list[str]:
    """Submit a race again whose holder has ended for good; return warnings. The caller has the claim of the race.

    YurtError: the arbiter does not respond, and nothing has changed; repeat it.
    """
    if not connect.responding_backend(race.arbiter).claims.give_up(race.folder, ONLY, lost.run.id, WHO):
        return []
    members = current_plans(store, race.id)
    over = all(entry.status.final for entry, _plan in members)
    reached = [plan for entry, plan in members if not store.draft(entry.run.id)]
    made = [_again(plan, left(lost, status)) for plan in reached] if over else []
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
