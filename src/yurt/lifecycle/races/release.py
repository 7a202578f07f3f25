"""Gives up a candidate whose site does not respond: ends its claims, and submits new candidates elsewhere.

If the claims themselves are on that site, the race gets a new folder of claims on another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import msgspec

from yurt.config import contexts
from yurt.contexts import connect
from yurt.errors import UnreachableError, YurtError
from yurt.lifecycle.outbox.cancellations import request, tell_cancel
from yurt.lifecycle.races.candidates import as_new, current_plans, send
from yurt.lifecycle.races.prepare import Taker, choose, moved, prepare, silent_sites
from yurt.model import ids
from yurt.model.progress import Watch
from yurt.model.race import item_of
from yurt.model.run import Plan, Race, Run, Status
from yurt.store import Entry, Store


class Held(msgspec.Struct, frozen=True):
    """A context that does not respond, and the items that its candidates hold."""

    context: str
    items: list[int]


def release(store: Store, whole: Plan, held: Held, who: str, watch: Watch) -> list[Run]:
    """End the claims of a silent context, and submit new candidates to the others; return these.

    The caller has the claim of the race. UserError: the other contexts alone cannot decide it.
    """
    race, items, silent = whole.race, held.items, held.context
    assert race is not None
    others = [(entry, plan) for entry, plan in current_plans(store, race.id) if entry.run.context != silent]
    ready = [
        (entry, plan) for entry, plan in others if not store.draft(entry.run.id)
    ]  # their sites were reached before
    try:
        arbiter = connect.responding_backend(race.arbiter).claims
        for item in items:
            arbiter.end(race.folder, item, who)
        gone = [plan for entry, plan in ready if entry.status.final]
        made = [as_new(plan) for plan in gone]
    except UnreachableError:
        if race.arbiter != silent or not ready:
            raise
        made = _elsewhere(store, whole, race, ready)
        for entry, _plan in others:
            if store.draft(entry.run.id):
                _withdraw(store, entry)
    for item in items:
        store.forget_holder(race.id, item)
    store.reopen_race(race.id)
    store.add_candidates(race.id, made, Status())
    send(store, [plan.run.context for plan in made], watch)
    return [plan.run for plan in made]


def _elsewhere(store: Store, whole: Plan, race: Race, others: Sequence[tuple[Entry, Plan]]) -> list[Plan]:
    """Open new claims on another site; and replace these candidates, whose jobs know only the old claims."""
    count = whole.run.tasks
    takers: list[Taker] = [
        (contexts.site(plan.run.context), _unordered(as_new(plan), count)) for _entry, plan in others
    ]
    places = [place for place, _plan in takers]
    choice = choose(places, None, silent_sites(places))
    new = moved(race, takers, choice)
    store.settle(msgspec.structs.replace(whole, race=new))
    made, _notes = prepare(new, takers, choice)
    claims = connect.named_backend(new.arbiter).claims
    for entry, plan in others:
        _withdraw(store, entry)
        for item in _begun(store, entry, plan):
            claims.claim(new.folder, item, entry.run.id)
    return made


def _unordered(plan: Plan, count: int) -> Plan:
    """Return the plan of a candidate with its tasks in the order of the race's items."""
    race = plan.race
    if race is None or not count:
        return plan
    items = {item_of(race, task, count): values for task, values in enumerate(plan.sets)}
    return msgspec.structs.replace(plan, sets=[items[item] for item in range(count)])


def _withdraw(store: Store, entry: Entry) -> None:
    """Cancel what a candidate has not started: its jobs would ask the site that does not respond."""
    if entry.status.final:
        return
    if not entry.run.tasks:
        waiting = [entry] if entry.status.started is None else []
    else:
        known = store.tasks(entry.run.id)
        numbers = [number for number in range(entry.run.tasks) if number not in known or known[number].started is None]
        waiting = store.several([ids.task(entry.run.id, number) for number in numbers])
    request(store, waiting)
    with suppress(YurtError):
        names = [each.run.id for each in waiting if not each.status.final]
        tell_cancel(store, names, connect.responding_backend(entry.run.context).runs)


def _begun(store: Store, entry: Entry, plan: Plan) -> list[int]:
    """Return the items that a candidate has started: they are taken."""
    race = plan.race
    if race is None or not entry.run.tasks:
        return []
    known = store.tasks(entry.run.id)
    ran = [task for task, status in known.items() if status.started and status.state != "cancelled"]
    return [item_of(race, task, entry.run.tasks) for task in ran]
