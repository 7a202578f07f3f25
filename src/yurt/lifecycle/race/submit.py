"""Submits a race: prepares its claims, saves its candidates, and submits them all."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from yurt import queue_prefetch
from yurt.config import paths
from yurt.errors import RefusedError, UserError, YurtError
from yurt.lifecycle.advance import Advanced
from yurt.lifecycle.outbox import claims
from yurt.lifecycle.outbox.outbox import send_large, send_waiting
from yurt.lifecycle.plan.request import Planned
from yurt.lifecycle.race import tend, ways
from yurt.lifecycle.race.ways import Choice, Way
from yurt.model import ids, layout
from yurt.model.context import Context
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.race import Mode, item_of, order
from yurt.model.run import Plan, Race, Run, Status
from yurt.sites import connect
from yurt.sites.fan_out import side_by_side
from yurt.store import Entry, Store

KEY_LIFE = 30 * 86400.0
"""Seconds after which the key of a race is of no use, even if nobody has removed it."""

SSH = (
    "-T",
    "-o",
    "BatchMode=yes",
    "-o",
    "IdentitiesOnly=yes",
    "-o",
    "ControlPath=none",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ServerAliveInterval=10",
    "-o",
    "StrictHostKeyChecking=yes",
    "-o",
    "GlobalKnownHostsFile=/dev/null",
    "-o",
    "HostKeyAlias=yurt-arbiter",
)


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
    plans = [each.plan for each in planned]
    choice = ways.choose(places, mode)
    plan = _whole(plans, choice)
    race = plan.run.id
    warnings = list(dict.fromkeys(warning for each in planned for warning in each.warnings))
    queue_prefetch.forget()
    claim = claims.take(race)  # before other processes see the race
    assert claim is not None
    with claim:
        store.add_race(plan, Status(state="waiting", reason="being submitted"))
        if notify:
            store.note_notice(race, notify)
        try:
            names = ", ".join(dict.fromkeys(each.name for each in places))
            watch(Event(f"preparing a race on {names}"))
            made, notes = _prepared(list(zip(places, plans, choice.ways, strict=True)), plan, choice, mode)
        except BaseException:
            _give_up(store, plan)
            raise
        if not store.add_candidates(race, made, Status()):  # another process has cancelled it
            made = []
        on_kept(race)
        refused = send(store, [each.run.context for each in made], watch)
        lost = [each for each in made if each.run.id in refused]
        if made and len(lost) == len(made):
            _give_up(store, plan)
            raise refused[lost[0].run.id]
        warnings += [f"{each.run.context} rejected the race: {refused[each.run.id].message}" for each in lost]
        tend.tend_one(store, race)
    claims.collect()
    entry = store.get(race)
    assert entry is not None
    return entry, [*warnings, *notes]


def send(store: Store, names: Sequence[str], watch: Watch) -> dict[str, YurtError]:
    """Submit saved candidates, on all their contexts at once. Return those that were rejected."""
    refused: dict[str, YurtError] = {}

    def one(name: str) -> None:
        with store.twin() as index, suppress(YurtError):  # what is left stays in the outbox
            backend = connect.responding_backend(name)
            moved = send_waiting(index, name, backend, watch)
            if moved.large:
                moved = _both(moved, send_large(index, name, backend, moved.large, watch, seconds=None))
            refused.update(moved.refused)

    side_by_side(one, list(dict.fromkeys(names)))
    return refused


def _both(first: Advanced, second: Advanced) -> Advanced:
    return msgspec.structs.replace(first, refused={**first.refused, **second.refused})


def _whole(plans: Sequence[Plan], choice: Choice) -> Plan:
    """Return the plan of the race itself, which is never submitted: it stands for its winner."""
    first, arbiter = plans[0], plans[choice.arbiter]
    created = time.time()
    made = ids.make_sweep if first.run.tasks else ids.make
    race = made(created, int.from_bytes(os.urandom(4)))
    run = msgspec.structs.replace(first.run, id=race, race=race, folder="", created=created, home_sync=False)
    folder = layout.race(_base(arbiter), race)
    by_ssh = [plan for plan, way in zip(plans, choice.ways, strict=True) if way == "ssh"]
    keys = list(dict.fromkeys((plan.run.context, _key_folder(plan, race)) for plan in by_ssh))
    whole = Race(id=race, arbiter=arbiter.run.context, folder=folder, key_folders=keys)
    return msgspec.structs.replace(first, run=run, race=whole)


def _base(plan: Plan) -> str:
    return plan.project_folder.rpartition("/projects/")[0]


Taker = tuple[Context, Plan, Way]
"""Who takes part in a race: a context, its plan, and how its jobs reach the arbiter."""


def _prepared(takers: Sequence[Taker], whole: Plan, choice: Choice, mode: Mode | None) -> tuple[list[Plan], list[str]]:
    """Make the folder of claims, and the keys; return the candidates, and notes for the user."""
    assert whole.race is not None
    race, arbiter = whole.race, takers[choice.arbiter][0]
    connect.backend(arbiter).claims.open(race.folder)
    by_ssh = [(place, plan) for place, plan, way in takers if way == "ssh"]
    ssh, notes = _keys(by_ssh, race, arbiter, mode) if by_ssh else ({}, [])
    made = []
    for at, (place, plan, way) in enumerate(takers):
        first, step = order(at, len(takers), plan.run.tasks) if plan.run.tasks else (0, 1)
        own = msgspec.structs.replace(race, first=first, step=step, here=way == "here", key_folders=[])
        if way == "ssh" and (words := ssh.get(_site(place, plan))):
            wait = max(ways.TRIES, ways.wait_of(place))
            own = msgspec.structs.replace(own, ssh=words, keys=_key_folder(plan, race.id), wait=wait)
        elif way == "carry":
            own = msgspec.structs.replace(own, carrier=_carrier(), wait=ways.LONGEST)
        else:
            own = msgspec.structs.replace(own, wait=ways.wait_of(place) or ways.TRIES)
        made.append(candidate(plan, own))
    return made, notes


def candidate(plan: Plan, race: Race) -> Plan:
    """Return a plan as a candidate of a race."""
    count = len(plan.sets)
    sets = [plan.sets[item_of(race, task, count)] for task in range(count)]
    return msgspec.structs.replace(plan, run=msgspec.structs.replace(plan.run, race=race.id), race=race, sets=sets)


def _keys(
    takers: Sequence[tuple[Context, Plan]], race: Race, arbiter: Context, mode: Mode | None
) -> tuple[dict[str, list[str]], list[str]]:
    """Make a key on each site, and let it claim; return the ssh command of each site, and notes.

    A site that does not reach the arbiter waits instead, if it may.
    """
    sites = {_site(place, plan): (place, plan) for place, plan in takers}
    backends = {site: connect.backend(place) for site, (place, _plan) in sites.items()}
    folders = {site: _key_folder(plan, race.id) for site, (_place, plan) in sites.items()}
    public = [backends[site].claims.make_key(folders[site]) for site in sites]
    hosts = connect.backend(arbiter).claims.add_keys(race.folder, public, time.time() + KEY_LIFE)
    known = "".join(f"yurt-arbiter {' '.join(line.split()[:2])}\n" for line in hosts.splitlines() if line.strip())
    found: dict[str, list[str]] = {}
    notes = []
    for site, (place, _plan) in sites.items():
        backends[site].claims.know_host(folders[site], known)
        words = _ssh(folders[site], arbiter.race_address or "")
        why = backends[site].claims.reaches(words)
        if not why:
            found[site] = words
            continue
        if mode == "arbiter" or not ways.wait_of(place):
            raise RefusedError(
                f"{place.name} does not reach {arbiter.name} by ssh as {arbiter.race_address}: {why}",
                code="race-unreachable",
                hint=f"correct `race_address` of {arbiter.name}, or set `race_wait: 2m` for {place.name}",
            )
        notes.append(f"{place.name} does not reach {arbiter.name} by ssh ({why}), so its jobs wait for an answer")
    return found, notes


def _site(place: Context, plan: Plan) -> str:
    return f"{place.slurm_url} {_base(plan)}"


def _key_folder(plan: Plan, race: str) -> str:
    return f"{layout.race(_base(plan), race)}-key"


def _ssh(folder: str, address: str) -> list[str]:
    """Return the ssh command with which the jobs of a site reach the arbiter: [USER@]HOST[:PORT]."""
    host, colon, port = address.rpartition(":")
    named = (host, ["-p", port]) if colon and port.isdigit() else (address, [])
    if not named[0] or named[0].startswith("-"):
        raise UserError(
            f"'{address}' is not an address for ssh",
            code="usage",
            hint="set `race_address`, for example: `race_address: alice@login.big.example`",
        )
    files = ["-o", f"UserKnownHostsFile={folder}/known_hosts", "-i", f"{folder}/key"]
    return ["ssh", *SSH, *files, *named[1], named[0]]


def _carrier() -> list[str]:
    """Return the command of this machine that carries claims."""
    homes = {"YURT_CONFIG_HOME": paths.config_home(), "YURT_DATA_HOME": paths.data_home()}
    return ["env", *(f"{name}={path}" for name, path in homes.items()), sys.executable, "-m", "yurt", "agent", "once"]


def _give_up(store: Store, whole: Plan) -> None:
    """Remove a race that does not take place, and what it left on its sites.

    If a site does not respond, the race stays in the index, as failed, and later yurt commands remove the rest.
    """
    assert whole.race is not None
    race = whole.run.id
    if tend.close(whole.race):
        store.remove(race)
        return
    for candidate in store.candidates(race):
        store.remove(candidate)
    entry = store.get(race)
    assert entry is not None
    tend.present(store, entry, tend.NOBODY, tend.NOBODY, {})


def again(store: Store, race: str, without: str, watch: Watch) -> list[Run]:
    """Submit new candidates for the contexts whose candidates were withdrawn, except one context."""
    made: list[Plan] = []
    for name in store.candidates(race):
        entry, plan = store.get(name), store.plan(name)
        if entry is None or plan is None or not entry.status.final or entry.run.context == without:
            continue
        if any(each.run.context == entry.run.context for each in made):
            continue
        created = time.time()
        fresh = (ids.make_sweep if plan.run.tasks else ids.make)(created, int.from_bytes(os.urandom(4)))
        folder = (layout.sweep if plan.run.tasks else layout.run)(plan.project_folder, fresh)
        run = msgspec.structs.replace(plan.run, id=fresh, folder=folder, created=created)
        made.append(msgspec.structs.replace(plan, run=run))
    store.add_candidates(race, made, Status())
    send(store, [each.run.context for each in made], watch)
    return [each.run for each in made]
