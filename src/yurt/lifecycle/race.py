"""race release: free the claim of a candidate that cannot be reached; and races for `cancel` and `retry`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from yurt.config import paths
from yurt.contexts import agent_state as agent
from yurt.contexts import folders
from yurt.contexts.person import person
from yurt.errors import RefusedError, UserError, YurtError
from yurt.lifecycle.outbox import claims
from yurt.lifecycle.plan.request import Planned
from yurt.lifecycle.races.release import Held
from yurt.lifecycle.races.release import release as free
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.select import which
from yurt.lifecycle.steps import STEPS
from yurt.model.progress import Watch, unwatched
from yurt.model.race import task_of
from yurt.model.result import Result
from yurt.model.tasks import ranges
from yurt.store import Entry, Store

if TYPE_CHECKING:
    from yurt.model.run import Plan


class Released(msgspec.Struct, frozen=True):
    """A race whose claim was freed."""

    id: str
    """The race."""
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
    who = f"released by {person()} on {os.uname().nodename}"
    claim = claims.take(run.race)
    if claim is None:
        raise RefusedError(
            f"another yurt command is busy with race {run.race}", code="busy", hint="run the command again"
        )
    with claim:
        new = free(store, plan, held, who, watch)
    notes = refresh_contexts(store, [each.context for each in new], steps=STEPS).warnings if new else []
    done = Released(run.race, held.context, held.items if run.tasks else [], [each.context for each in new])
    warnings = [] if new else [f"no other context takes part in race {run.race}; it waits for {held.context}"]
    return Result(kind="race-released", data=done, warnings=[*notes, *warnings])


def _held(store: Store, plan: Plan, silent: dict[str, YurtError]) -> Held:
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
        raise RefusedError(f"race {race} is over", code="race-over", hint=f"submit it again with `yurt retry {race}`")
    if not stuck:
        context = next(iter(running.values())).run.context
        raise RefusedError(
            f"{context} responds and has race {race}; a claim is released only if its site does not respond",
            code="race-reachable",
            hint=f"stop it with `yurt cancel {race}`",
        )
    context = next(iter(stuck.values())).run.context
    return Held(context, [item for item, entry in stuck.items() if entry.run.context == context])


Plans = Callable[[Entry, Sequence[int] | None], Planned]
"""Plans the retry of a candidate; of a sweep, of these tasks."""


def where(entry: Entry) -> str:
    """Return in words where a new race was submitted, or where it already runs."""
    store = folders.store()
    if store.holders(entry.run.id) and not entry.run.tasks:
        return f"{entry.status.state} on {entry.run.context}, which was first"
    members = store.several(store.candidates(entry.run.id))
    if not members:
        return entry.status.reason
    open_ones = [each for each in members if not each.status.final]
    contexts = [each.run.context for each in open_ones]
    names: dict[bool, list[str]] = {True: [], False: []}
    for each in open_ones:
        name, partition = each.run.context, each.run.resources.partition
        names[bool(each.status.attempts)].append(f"{name} ({partition})" if contexts.count(name) > 1 else name)
    texts = [
        f"{how} {', '.join(names[sent])}" for sent, how in ((True, "submitted to"), (False, "saved for")) if names[sent]
    ]
    what = "each task" if entry.run.tasks else "it"
    return f"{', '.join(texts)}; {what} runs where it starts first{_how(store, members)}"


def first_cost(store: Store, race: str) -> list[str]:
    """Return what it costs that jobs of a race wait for a yurt command, and how to avoid it, the first time they do."""
    _asking, waiting = _ways(store, store.several(store.candidates(race)))
    said = paths.data_home() / "cache" / "race-wait-said"
    if not waiting or said.exists() or agent.is_running():
        return []
    with suppress(OSError):
        paths.write_private(said, b"")
    return [
        f"a job on {' or '.join(waiting)} holds its node without work for up to {max(waiting.values())} s, until a yurt"
        " command or the agent tells it who was first; without an answer it is queued again, and held after 5 starts;"
        " to avoid that, run `yurt agent start`, or set `race_address` and `race_keys`, so that jobs ask by ssh"
    ]


def _ways(store: Store, members: Sequence[Entry]) -> tuple[dict[str, list[str]], dict[str, int]]:
    """Return the contexts whose jobs ask each arbiter by ssh, and how long those wait that need a yurt command."""
    asking: dict[str, list[str]] = {}
    waiting: dict[str, int] = {}
    for entry in members:
        plan = store.plan(entry.run.id)
        race = plan.race if plan is not None else None
        if race is not None and race.ssh:
            asking.setdefault(race.arbiter, []).append(entry.run.context)
        elif race is not None and not race.here and not race.carrier:
            waiting[entry.run.context] = race.wait
    return asking, waiting


def _how(store: Store, members: Sequence[Entry]) -> str:
    """Return in words how jobs find out who was first, if they cannot just look."""
    asking, waiting = _ways(store, members)
    texts = [f"; jobs on {', '.join(dict.fromkeys(names))} ask {arbiter} by ssh" for arbiter, names in asking.items()]
    if waiting:
        where, longest = ", ".join(waiting), max(waiting.values())
        texts.append(f"; jobs on {where} wait up to {longest} s for a yurt command, such as the agent, to answer")
    return "".join(texts)


def retry_plans(store: Store, entry: Entry, items: Sequence[int] | None, plan: Plans) -> list[Planned]:
    """Plan the retry of a race, or of items of one, for each of its candidates. RefusedError: it has none."""
    race, count = entry.run.race, entry.run.tasks
    if entry.run.task is not None:
        items = [entry.run.task]
    found: list[Planned] = []
    known: set[tuple[str, bytes]] = set()
    for member in store.several(store.candidates(race)):
        old = store.plan(member.run.id)
        same = (member.run.context, msgspec.json.encode(member.run.resources))
        if old is None or old.race is None or same in known:  # one that `release` submitted again
            continue
        known.add(same)
        total = member.run.tasks
        tasks = [task_of(old.race, item, total) for item in items or range(total)] if total else None
        made = plan(member, tasks)
        retried = ranges(items) if items is not None and entry.run.task is None and count else ""
        run = msgspec.structs.replace(made.plan.run, race="", retry_of=entry.run.id, retried=retried)
        found.append(msgspec.structs.replace(made, plan=msgspec.structs.replace(made.plan, run=run, race=None)))
    if not found:
        raise RefusedError(
            f"race {race} was never submitted ({entry.status.reason}), so there is nothing to retry",
            code="impossible",
            hint="submit it again with `yurt run --race CONTEXT,CONTEXT …`",
        )
    return found
