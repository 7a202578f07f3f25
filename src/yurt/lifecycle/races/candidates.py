"""The candidates of a race: submits saved ones, and makes new ones in the place of those that failed."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import msgspec

from yurt.contexts import connect
from yurt.contexts.fan_out import side_by_side
from yurt.errors import YurtError
from yurt.lifecycle.outbox.outbox import send_large, send_waiting
from yurt.model import ids, layout
from yurt.model.progress import Watch
from yurt.model.race import current
from yurt.model.run import Plan
from yurt.store import Entry, Store


class Sent(msgspec.Struct, frozen=True):
    """The candidates that their sites rejected, and the contexts on which some are left to submit; with the errors."""

    refused: dict[str, YurtError] = {}
    stopped: dict[str, YurtError] = {}


def send(store: Store, names: Sequence[str], watch: Watch) -> Sent:
    """Submit saved candidates, on all their contexts at once. What is left stays in the outbox."""
    sent = Sent()

    def one(name: str) -> None:
        with store.twin() as index:
            try:
                backend = connect.responding_backend(name)
                done = send_waiting(index, name, backend, watch)
                sent.refused.update(done.refused)
                if done.large:
                    done = send_large(index, name, backend, done.large, watch, seconds=None)
                    sent.refused.update(done.refused)
                if done.stopped is not None:
                    sent.stopped[name] = done.stopped
            except YurtError as error:
                sent.stopped[name] = error

    if names:
        side_by_side(one, list(dict.fromkeys(names)))
    return sent


def current_plans(store: Store, race: str) -> list[tuple[Entry, Plan]]:
    """Return the candidates of a race that no later one has replaced, with their plans."""
    found = current([(entry.run, entry) for entry in store.several(store.candidates(race))])
    plans = [(entry, store.plan(run.id)) for run, entry in found]
    return [(entry, plan) for entry, plan in plans if plan is not None]


def as_new(plan: Plan) -> Plan:
    """Return the plan of a new candidate that replaces another one."""
    created = time.time()
    fresh = (ids.make_sweep if plan.run.tasks else ids.make)(created, int.from_bytes(os.urandom(4)))
    folder = (layout.sweep if plan.run.tasks else layout.run)(plan.project_folder, fresh)
    return msgspec.structs.replace(
        plan, run=msgspec.structs.replace(plan.run, id=fresh, folder=folder, created=created, retry_of=plan.run.id)
    )
