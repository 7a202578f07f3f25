"""race release: free the claim of a candidate that cannot be reached. Also cancels and retries races for other verbs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from yurt.errors import RefusedError, UserError, YurtError
from yurt.lifecycle.outbox import claims
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.select import which
from yurt.model.progress import Watch, unwatched
from yurt.model.race import ONLY
from yurt.sites import connect, folders
from yurt.sites.person import person
from yurt.store import Entry, Store
from yurt.verbs.cancel import Cancelled, cancel_runs
from yurt.verbs.result import Result
from yurt.verbs.steps import STEPS

if TYPE_CHECKING:
    from yurt.model.run import Plan


class Released(msgspec.Struct, frozen=True):
    """A race whose claim was freed."""

    id: str
    holder: str
    """The context that had the claim."""
    items: list[int]
    """Of a sweep: the tasks whose claims were freed."""
    submitted: list[str]
    """The contexts to which it was submitted again."""


class Stuck(msgspec.Struct, frozen=True):
    """What a release would do, for the question before it."""

    race: str
    context: str
    tasks: int


def release(
    name: str,
    *,
    confirm: Callable[[Stuck], None] = lambda _stuck: None,
    watch: Watch = unwatched,
) -> Result[Released]:
    """Free the claims of a candidate whose site does not respond, and submit the race again to the other contexts.

    `confirm` is called before that, and may raise. RefusedError: nothing needs to be freed, or it cannot be.
    """
    store = folders.store()
    (entry,) = which(store, [name])
    run = entry.run
    if not run.race:
        raise UserError(
            f"run {run.id} is not a race", code="usage", hint=f"cancel it with `yurt cancel {run.id}` instead"
        )
    plan = store.plan(run.race)
    if plan is None or plan.race is None:
        raise RefusedError(
            f"this machine did not submit race {run.race}", code="impossible", hint="release it where it was submitted"
        )
    refreshed = refresh_contexts(store, [run.context], steps=STEPS, watch=watch)
    held = _held(store, plan, refreshed.failed)
    confirm(Stuck(run.race, held.context, len(held.items)))
    arbiter = connect.responding_backend(plan.race.arbiter).claims
    who = f"released by {person()} on {os.uname().nodename}"
    claim = claims.take(run.race)
    if claim is None:
        raise RefusedError(
            f"another yurt command is busy with race {run.race}", code="busy", hint="run the command again"
        )
    with claim:
        for item in held.items:
            arbiter.end(plan.race.folder, item, who)
            store.forget_holder(run.race, item)
        store.reopen_race(run.race)
        from yurt.race.submit import again

        new = again(store, run.race, held.context, watch)
    notes = refresh_contexts(store, [each.context for each in new], steps=STEPS).warnings if new else []
    done = Released(run.race, held.context, held.items if run.tasks else [], [each.context for each in new])
    warnings = [] if new else [f"no other context takes part in race {run.race}; it waits for {held.context}"]
    return Result(kind="race-released", data=done, warnings=[*notes, *warnings])


class _Held(msgspec.Struct, frozen=True):
    context: str
    items: list[int]


def _held(store: Store, plan: Plan, silent: dict[str, YurtError]) -> _Held:
    """Return the claims of the candidates of a site that does not respond."""
    race = plan.run.id
    holders = store.holders(race)
    if not holders:
        raise RefusedError(
            f"no candidate of race {race} has started, so there is nothing to release",
            code="race-open",
            hint=f"see its candidates with `yurt show {race}`",
        )
    names = {entry.run.id: entry for entry in store.several(list(dict.fromkeys(holders.values())))}
    running = {item: names[who] for item, who in holders.items() if who in names and not names[who].status.final}
    stuck = {item: entry for item, entry in running.items() if entry.run.context in silent}
    if not running:
        raise RefusedError(
            f"race {race} is over", code="race-over", hint=f"submit it again with `yurt retry {race}`"
        )
    if not stuck:
        context = next(iter(running.values())).run.context
        raise RefusedError(
            f"{context} responds and has race {race}; a claim is released only if its site does not respond",
            code="race-reachable",
            hint=f"stop it with `yurt cancel {race}`",
        )
    context = next(iter(stuck.values())).run.context
    return _Held(context, [item for item, entry in stuck.items() if entry.run.context == context])


def cancel_races(store: Store, entries: Sequence[Entry]) -> tuple[list[Cancelled], YurtError | None]:
    """Cancel runs, and races with all their candidates."""
    done: list[Cancelled] = []
    unreachable: YurtError | None = None
    for entry in entries:
        members = _members(store, entry)
        if members is None:
            found, failure = cancel_runs(store, [entry])
            done += found
        else:
            found, failure = cancel_runs(store, members)
            done.append(_as_one(store, entry, found))
        unreachable = failure or unreachable
    return done, unreachable


def _members(store: Store, entry: Entry) -> list[Entry] | None:
    """Return what a race, or an item of one, has in the queues; None for a run that is no race."""
    race = entry.run.sweep or entry.run.id
    if entry.run.race != race or not race:
        return None
    names = store.candidates(race)
    if entry.run.task is None:
        return [each for each in store.several(names) if not each.status.final]
    from yurt.model import ids
    from yurt.model.race import task_of

    found = []
    for name in names:
        plan = store.plan(name)
        if plan is not None and plan.race is not None:
            found.append(ids.task(name, task_of(plan.race, entry.run.task, plan.run.tasks)))
    return [each for each in store.several(found) if not each.status.final]


def _as_one(store: Store, entry: Entry, found: Sequence[Cancelled]) -> Cancelled:
    from yurt.race.tend import tend_one

    race = entry.run.sweep or entry.run.id
    claim = claims.take(race)
    if claim is not None:
        with claim:
            tend_one(store, race)
    after = store.get(entry.run.id) or entry
    failed = [each for each in found if not each.delivered]
    note = "; ".join(f"{each.context}: {each.note}" for each in failed)
    if not found:
        note = f"it had already finished ({entry.status.state})"
    where = ", ".join(dict.fromkeys(each.context for each in found)) or entry.run.context
    return Cancelled(entry.run.id, where, after.status.state, not failed, note or after.status.reason)


def winner(store: Store, race: str) -> str:
    """Return the candidate that holds a race; empty if nobody does."""
    return store.holders(race).get(ONLY, "")
