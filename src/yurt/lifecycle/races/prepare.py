"""Prepares a race on its sites: chooses the arbiter among those that respond, makes the folder of its claims, and the
keys with which jobs of other sites reach it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Mapping, Sequence

import msgspec

from yurt.backends.kinds import kind_of
from yurt.config import paths
from yurt.contexts import connect
from yurt.contexts.fan_out import side_by_side
from yurt.errors import RefusedError, UnreachableError, UserError, YurtError
from yurt.lifecycle.outbox.submit import NO_CONNECTION
from yurt.lifecycle.races import ways
from yurt.lifecycle.races.ways import Choice
from yurt.model import layout
from yurt.model.context import Context
from yurt.model.race import Mode, item_of, order
from yurt.model.run import Plan, Race

KEY_LIFE = 30 * 86400.0
"""Seconds after which the key of a race is of no use, even if nobody has removed it."""

OPTIONS = {
    "BatchMode": "yes",
    "IdentitiesOnly": "yes",
    "ControlPath": "none",
    "ConnectTimeout": "10",
    "ServerAliveInterval": "10",
    "StrictHostKeyChecking": "yes",
    "GlobalKnownHostsFile": "/dev/null",
    "HostKeyAlias": "yurt-arbiter",
}
"""Options of ssh for jobs that ask the arbiter."""

Taker = tuple[Context, Plan]
"""Who takes part in a race: a context, and the plan of a run there."""


def silent_sites(places: Sequence[Context], known: Collection[int] = ()) -> dict[int, YurtError]:
    """Return why the sites of candidates do not respond, by their number; query all but the known ones at once."""
    found: dict[int, YurtError] = {}
    sites: dict[str, list[int]] = {}
    for at, place in enumerate(places):
        if at not in known and not kind_of(place.type).here:
            sites.setdefault(f"{place.slurm_url} {place.storage_dir}", []).append(at)

    def one(numbers: Sequence[int]) -> None:
        place = places[numbers[0]]
        backend = connect.backend(place)
        try:
            connect.check_responds(place, backend)
            backend.claims.wants([])
        except (UnreachableError, RefusedError) as error:
            if isinstance(error, RefusedError) and error.code not in NO_CONNECTION:
                raise
            found.update(dict.fromkeys(numbers, error))

    if sites:
        side_by_side(one, list(sites.values()))
    return found


def choose(places: Sequence[Context], mode: Mode | None, silent: Mapping[int, YurtError]) -> Choice:
    """Return the choice among the sites that respond. UnreachableError: none does, or they cannot decide the race."""
    if not silent:
        return ways.choose(places, mode)
    why, first = "; ".join(dict.fromkeys(each.message for each in silent.values())), next(iter(silent.values()))
    if len(silent) == len(places):
        text = f"no site of this race responds, and nothing was submitted: {why}"
        raise UnreachableError(text, code=first.code, hint=first.hint)
    try:
        return ways.choose(places, mode, silent)
    except UserError as error:
        text = f"{why}; without it, {error.message}"
        raise UnreachableError(text, code=first.code, hint=error.hint) from None


def new_race(race: str, takers: Sequence[Taker], choice: Choice) -> Race:
    """Return the race itself: where its claims and its keys will be."""
    arbiter = takers[choice.arbiter][1]
    by_ssh = [plan for (_place, plan), way in zip(takers, choice.ways, strict=True) if way == "ssh"]
    keys = dict.fromkeys((plan.run.context, _key_folder(plan, race)) for plan in by_ssh)
    folder = layout.race(_base(arbiter), race)
    return Race(id=race, arbiter=arbiter.run.context, folder=folder, keys=list(keys))


def moved(race: Race, takers: Sequence[Taker], choice: Choice) -> Race:
    """Return a race with its claims on another site; what is left on the old one is removed at the end."""
    new, old = new_race(race.id, takers, choice), [(race.arbiter, race.folder), *race.keys]
    return msgspec.structs.replace(new, keys=list(dict.fromkeys([*new.keys, *old])))


def prepare(
    race: Race, takers: Sequence[Taker], choice: Choice, mode: Mode | None = None
) -> tuple[list[Plan], list[str]]:
    """Make the folder of claims, and the keys; return the candidates, and notes for the user.

    A candidate without a way to the arbiter is left out; RefusedError if the user insists on this mode.
    """
    arbiter = takers[choice.arbiter][0]
    connect.backend(arbiter).claims.open(race.folder)
    by_ssh = [taker for taker, way in zip(takers, choice.ways, strict=True) if way == "ssh"]
    ssh, why = _keys(by_ssh, race, arbiter) if by_ssh else ({}, {})
    made, notes = [], []
    for at, ((place, plan), way) in enumerate(zip(takers, choice.ways, strict=True)):
        first, step = order(at, len(takers), plan.run.tasks) if plan.run.tasks else (0, 1)
        own = msgspec.structs.replace(race, keys=[], first=first, step=step, here=way == "here")
        words, wait = ssh.get(_site(place, plan), []), ways.wait_of(place)
        if way == "out":
            continue
        if way == "carry":
            own = msgspec.structs.replace(own, carrier=_carrier(), wait=ways.LONGEST)
        elif way == "ssh" and words:
            own = msgspec.structs.replace(own, ssh=words, wait=max(ways.TRIES, wait))
        else:
            own = msgspec.structs.replace(own, wait=wait or ways.TRIES)
        if way == "ssh" and not words:
            problem, may_wait = _problem(place, arbiter, why[_site(place, plan)]), wait and mode != "arbiter"
            if not may_wait and problem.exit_code != UnreachableError.exit_code:
                raise problem
            rest = "so its jobs wait for an answer" if may_wait else "so the race goes on without it"
            notes.append(f"{problem.message}, {rest}")
            if not may_wait:
                continue
        made.append(candidate(plan, own))
    return made, notes


def candidate(plan: Plan, race: Race) -> Plan:
    """Return a plan as a candidate of a race."""
    count = len(plan.sets)
    sets = [plan.sets[item_of(race, task, count)] for task in range(count)]
    return msgspec.structs.replace(plan, run=msgspec.structs.replace(plan.run, race=race.id), race=race, sets=sets)


def _keys(takers: Sequence[Taker], race: Race, arbiter: Context) -> tuple[dict[str, list[str]], dict[str, YurtError]]:
    """Make a key on each site, and let it claim; return the ssh command of each site, or why it has none."""
    sites = {_site(place, plan): (place, plan) for place, plan in takers}
    folders = {site: _key_folder(plan, race.id) for site, (_place, plan) in sites.items()}
    backends = {site: connect.backend(place) for site, (place, _plan) in sites.items()}
    public: dict[str, str] = {}
    why: dict[str, YurtError] = {}
    for site, backend in backends.items():
        try:
            connect.check_responds(sites[site][0], backend)
            public[site] = backend.claims.make_key(folders[site])
        except UnreachableError as error:
            why[site] = error
    address = arbiter.race_address or ""
    words = {site: _ssh(folders[site], address) for site in public}
    if not public:
        return {}, why
    hosts = connect.backend(arbiter).claims.add_keys(race.folder, list(public.values()), time.time() + KEY_LIFE)
    known = "".join(f"yurt-arbiter {' '.join(line.split()[:2])}\n" for line in hosts.splitlines() if line.strip())
    for site in public:
        try:
            backends[site].claims.know_host(folders[site], known)
            if problem := backends[site].claims.reaches(words[site]):
                raise RefusedError(problem, code="race-unreachable")
        except (UnreachableError, RefusedError) as error:
            why[site] = error
            del words[site]
    return words, why


def _problem(place: Context, arbiter: Context, why: YurtError) -> YurtError:
    if isinstance(why, UnreachableError):
        return why
    return RefusedError(
        f"{place.name} does not reach {arbiter.name} by ssh as {arbiter.race_address}: {why.message}",
        code="race-unreachable",
        hint=f"correct `race_address` of {arbiter.name}, or set `race_wait: 2m` for {place.name}",
    )


def _base(plan: Plan) -> str:
    return plan.project_folder.rpartition("/projects/")[0]


def _site(place: Context, plan: Plan) -> str:
    return f"{place.slurm_url} {_base(plan)}"


def _key_folder(plan: Plan, race: str) -> str:
    return f"{layout.race(_base(plan), race)}-key"


def _ssh(folder: str, address: str) -> list[str]:
    """Return the ssh command with which the jobs of a site reach the arbiter: [USER@]HOST[:PORT]."""
    host, colon, port = address.rpartition(":")
    target, at_port = (host, ["-p", port]) if colon and port.isdigit() else (address, [])
    if not target or target.startswith("-"):
        raise UserError(
            f"'{address}' is not an address for ssh",
            code="usage",
            hint="set `race_address`, for example: `race_address: alice@login.big.example`",
        )
    options = {**OPTIONS, "UserKnownHostsFile": f"{folder}/known_hosts"}
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    return ["ssh", "-T", *words, "-i", f"{folder}/key", *at_port, target]


def _carrier() -> list[str]:
    """Return the command of this machine that carries claims."""
    homes = {"YURT_CONFIG_HOME": paths.config_home(), "YURT_DATA_HOME": paths.data_home()}
    yurt = [sys.executable, "-P", "-m", "yurt"]
    return ["env", *(f"{name}={path}" for name, path in homes.items()), *yurt, "agent", "once"]
