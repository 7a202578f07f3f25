"""Submits a race: saves it, prepares its sites, saves its candidates, and submits them all."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from yurt.contexts import early_answer
from yurt.errors import UnreachableError, YurtError
from yurt.lifecycle.outbox import claims, refused
from yurt.lifecycle.plan.request import Planned
from yurt.lifecycle.plan.settle import with_plan
from yurt.lifecycle.races import tend, ways
from yurt.lifecycle.races.candidates import send
from yurt.lifecycle.races.prepare import Taker, choose, moved, new_race, prepare, silent_sites
from yurt.lifecycle.races.ways import Choice
from yurt.model import ids
from yurt.model.context import Context
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.race import Mode
from yurt.model.run import Plan, Status
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

    The arbiter is one of the sites that respond; UnreachableError, and nothing is kept, if none does. A candidate whose
    site does not respond is saved, and joins the race when it does. One that its site rejects is a warning, unless all
    of them are rejected.
    """
    ways.choose(places, mode)  # a mistake in the configuration is reported first
    silent: dict[int, YurtError] = {
        at: each.unsettled.why for at, each in enumerate(planned) if each.unsettled is not None
    }
    silent |= silent_sites(places, known=silent)
    choice = choose(places, mode, silent)
    takers = [(place, each.plan) for place, each in zip(places, planned, strict=True)]
    first, created = planned[0].plan, time.time()
    race_id = (ids.make_sweep if first.run.tasks else ids.make)(created, int.from_bytes(os.urandom(4)))
    race = new_race(race_id, takers, choice)
    run = msgspec.structs.replace(
        first.run, id=race_id, race=race_id, folder="", created=created, home_sync=False
    )  # it stands for its winner, and is never submitted
    whole = msgspec.structs.replace(first, run=run, race=race)
    warnings = list(dict.fromkeys(warning for each in planned for warning in each.warnings))
    early_answer.states_changed()
    claim = claims.take(race_id)  # before other processes see the race
    assert claim is not None
    with claim:
        store.add_race(whole, Status(reason="being submitted"))
        try:
            if notify:
                store.note_notice(race_id, notify)
            watch(Event(f"preparing a race on {', '.join(dict.fromkeys(each.name for each in places))}"))
            choice, made, notes = _prepared(store, whole, takers, choice, mode=mode, silent=silent)
            if not store.add_candidates(
                race_id, made, Status(), _drafts(planned, made)
            ):  # another process cancelled it
                made = []
        except BaseException:
            if store.candidates(race_id):  # Ctrl-C came just after they were saved
                on_kept(race_id)
            else:
                _give_up(store, race_id)
            raise
        on_kept(race_id)
        absent = {places[at].name: error for at, error in silent.items()}
        sent = send(store, [each.run.context for each in made if each.run.context not in absent], watch)
        rejected = [each.run for each in made if each.run.id in sent.refused]
        if made and len(rejected) == len(made):
            _give_up(store, race_id)
            raise sent.refused[rejected[0].id]
        warnings += [f"{each.context} rejected the race: {sent.refused[each.id].message}" for each in rejected]
        warnings += _about_absent(store, choice, takers, made, absent | sent.stopped)
        tend.tend_one(store, race_id)
    claims.collect()
    entry = store.get(race_id)
    assert entry is not None
    return entry, [*warnings, *notes]


def _prepared(
    store: Store,
    whole: Plan,
    takers: Sequence[Taker],
    choice: Choice,
    *,
    mode: Mode | None,
    silent: dict[int, YurtError],
) -> tuple[Choice, list[Plan], list[str]]:
    """Prepare a race. If its arbiter no longer responds, another one takes its place: no candidate knows of it yet."""
    race = whole.race
    assert race is not None
    while True:
        try:
            return (choice, *prepare(race, takers, choice, mode))
        except UnreachableError as error:
            lost = takers[choice.arbiter][0]
            silent |= {at: error for at, (place, _plan) in enumerate(takers) if ways.same_site(place, lost)}
            choice = choose([place for place, _plan in takers], mode, silent)
            race = moved(race, takers, choice)
            store.settle(msgspec.structs.replace(whole, race=race))


def _drafts(planned: Sequence[Planned], made: Sequence[Plan]) -> dict[str, bytes]:
    """Return the drafts of candidates whose sites were never reached."""
    known = {each.plan.run.id: each.unsettled.draft for each in planned if each.unsettled is not None}
    return {each.run.id: with_plan(known[each.run.id], each) for each in made if each.run.id in known}


def _about_absent(
    store: Store, choice: Choice, takers: Sequence[Taker], made: Sequence[Plan], absent: Mapping[str, YurtError]
) -> list[str]:
    """Return warnings about candidates that are not submitted yet, or take no part, and record the reason."""
    out = [place.name for (place, _plan), way in zip(takers, choice.ways, strict=True) if way == "out"]
    found = [f"{absent[name].message}; the race goes on without {name}" for name in out]
    for entry in store.several([plan.run.id for plan in made]):
        name = entry.run.context
        if name in absent and entry.status.state == "waiting":
            why = absent[name].message
            if not entry.status.reason:
                refused.set_fields(store, entry.run.id, reason=why)
            later = f"will be submitted by the next yurt command that reaches {name}"
            found.append(f"{why}; the candidate on {name} is saved and {later}")
    return list(dict.fromkeys(found))


def _give_up(store: Store, race: str) -> None:
    """Remove a race that does not take place, and what it left on its sites.

    If a site does not respond, the race stays in the index, as failed, and later yurt commands remove the rest.
    """
    entry, plan = store.get(race), store.plan(race)
    assert entry is not None and plan is not None and plan.race is not None
    if tend.close(plan.race):
        store.remove(race)
        return
    for candidate in store.candidates(race):
        store.remove(candidate)
    tend.present(store, entry, tend.NOBODY, tend.NOBODY, {})
