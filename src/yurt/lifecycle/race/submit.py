"""Submits a race: saves it, prepares its sites, saves its candidates, and submits them all."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from yurt import queue_prefetch
from yurt.errors import YurtError
from yurt.lifecycle.outbox import claims
from yurt.lifecycle.outbox.outbox import send_large, send_waiting
from yurt.lifecycle.plan.request import Planned
from yurt.lifecycle.race import tend, ways
from yurt.lifecycle.race.prepare import new_race, prepare
from yurt.model import ids
from yurt.model.context import Context
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.race import Mode
from yurt.model.run import Race, Status
from yurt.sites import connect
from yurt.sites.fan_out import side_by_side
from yurt.store import Entry, Store


def submit(
    store: Store,
    places: Sequence[Context],
    planned: Sequence[Planned],
    mode: Mode | None,
    *,
    notify: str = "",
    on_kept: Callable[[str], None] = lambda _run: None,
    watch: Watch = unwatched,
) -> tuple[Entry, list[str]]:
    """Save a race and submit its candidates. Return it, and warnings. UserError and RefusedError: nothing is kept.

    A candidate that its site rejects is a warning, unless all of them are rejected.
    """
    choice = ways.choose(places, mode)
    takers = [(place, each.plan) for place, each in zip(places, planned, strict=True)]
    first, created = planned[0].plan, time.time()
    race_id = (ids.make_sweep if first.run.tasks else ids.make)(created, int.from_bytes(os.urandom(4)))
    race = new_race(race_id, takers, choice)
    run = msgspec.structs.replace(
        first.run, id=race_id, race=race_id, folder="", created=created, home_sync=False
    )  # it stands for its winner, and is never submitted
    warnings = list(dict.fromkeys(warning for each in planned for warning in each.warnings))
    queue_prefetch.forget()
    claim = claims.take(race_id)  # before other processes see the race
    assert claim is not None
    with claim:
        store.add_race(msgspec.structs.replace(first, run=run, race=race), Status(reason="being submitted"))
        try:
            if notify:
                store.note_notice(race_id, notify)
            watch(Event(f"preparing a race on {', '.join(dict.fromkeys(each.name for each in places))}"))
            made, notes = prepare(race, takers, choice, mode)
            if not store.add_candidates(race_id, made, Status()):  # another process has cancelled it
                made = []
        except BaseException:
            if store.candidates(race_id):  # Ctrl-C came just after they were saved
                on_kept(race_id)
            else:
                _give_up(store, race)
            raise
        on_kept(race_id)
        refused = send(store, [each.run.context for each in made], watch)
        lost = [each.run for each in made if each.run.id in refused]
        if made and len(lost) == len(made):
            _give_up(store, race)
            raise refused[lost[0].id]
        warnings += [f"{each.context} rejected the race: {refused[each.id].message}" for each in lost]
        tend.tend_one(store, race_id)
    claims.collect()
    entry = store.get(race_id)
    assert entry is not None
    return entry, [*warnings, *notes]


def _give_up(store: Store, race: Race) -> None:
    """Remove a race that does not take place, and what it left on its sites.

    If a site does not respond, the race stays in the index, as failed, and later yurt commands remove the rest.
    """
    if tend.close(race):
        store.remove(race.id)
        return
    for candidate in store.candidates(race.id):
        store.remove(candidate)
    entry = store.get(race.id)
    assert entry is not None
    tend.present(store, entry, tend.NOBODY, tend.NOBODY, {})


def send(store: Store, names: Sequence[str], watch: Watch) -> dict[str, YurtError]:
    """Submit saved candidates, on all their contexts at once. Return those that were rejected."""
    refused: dict[str, YurtError] = {}

    def one(name: str) -> None:
        with store.twin() as index, suppress(YurtError):  # what is left stays in the outbox
            backend = connect.responding_backend(name)
            moved = send_waiting(index, name, backend, watch)
            refused.update(moved.refused)
            if moved.large:
                refused.update(send_large(index, name, backend, moved.large, watch, seconds=None).refused)

    if names:
        side_by_side(one, list(dict.fromkeys(names)))
    return refused
