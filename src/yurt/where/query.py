"""When a request would start on one context: from its facts, its scheduler, and the waits of earlier runs."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence

import msgspec

from yurt.config import facts as recorded
from yurt.contexts import bad_nodes, connect
from yurt.contexts.facts import facts_if_probed
from yurt.contexts.folders import project_folder
from yurt.errors import UnreachableError
from yurt.model.facts import Facts, Partition, partition_of_job
from yurt.model.live import Live, LivePartition
from yurt.model.run import Resources
from yurt.model.where import (
    MOST,
    REJECTED,
    SOON,
    Answer,
    Ask,
    ExpectedStart,
    Forecast,
    Question,
    SmallerRequest,
    Starts,
)
from yurt.store import Store
from yurt.where import cache
from yurt.where.history import History, history
from yurt.where.wanted import Wanted

SMALLER = 3
"""How many test submissions are kept for requests for less, if there are any."""

ROUND_TIMES = (12 * 60, 4 * 60, 60)
"""Time limits in minutes for which sites often have room."""

Check = Callable[[Resources], list[str]]
"""Returns why the site can never start a request."""


class Choices(msgspec.Struct, frozen=True, kw_only=True):
    """The partitions of a site for a request."""

    possible: list[str] = []
    """In the order in which they are asked: those that a run uses by itself first."""
    impossible: dict[str, str] = {}
    """Why each of the others cannot take it."""
    too_long: dict[str, int] = {}
    """Partitions that could take it with this shorter time limit, in minutes."""


def choices(resources: Resources, facts: Facts, check: Check, only: Sequence[str] = ()) -> Choices:
    """Return the partitions that can take a request, by the recorded facts. `only`: the user names these."""
    possible, impossible, too_long = list[str](), dict[str, str](), dict[str, int]()
    names = list(only) or [each.name for each in facts.partitions]
    for name in names:
        here = msgspec.structs.replace(resources, partition=name)
        partition = facts.partition(name)
        problems = [each.partition("; use ")[0] for each in check(here)]
        problems += _no_account(partition, resources, facts)
        if not problems:
            possible.append(name)
            continue
        impossible[name] = "; ".join(problems)
        limit = partition.max_minutes if partition is not None else None
        if limit and resources.minutes and limit < resources.minutes:
            shorter = msgspec.structs.replace(here, minutes=limit)
            if not check(shorter) and not _no_account(partition, resources, facts):
                too_long[name] = limit
    own = partition_of_job(resources.partition, facts).split(",")
    preempted = {each.name for each in facts.partitions if each.preempt}
    possible.sort(key=lambda name: (name not in own, name in preempted))
    return Choices(possible=possible, impossible=impossible, too_long=too_long)


def _no_account(partition: Partition | None, resources: Resources, facts: Facts) -> list[str]:
    """Return why none of the user's accounts may use a partition; a named account is checked elsewhere."""
    if partition is None or not partition.accounts or not facts.accounts or resources.account:
        return []
    if {each.name for each in facts.accounts} & set(partition.accounts):
        return []
    return [f"partition '{partition.name}' is only for account {' or '.join(partition.accounts)}"]


def asks_for(resources: Resources, found: Choices, facts: Facts) -> tuple[list[Ask], list[str]]:
    """Return the test submissions, requests for less last, and the partitions that are not asked: there is a limit."""
    smaller = shaped(resources, found, facts)
    room = MOST - min(SMALLER, len(smaller))
    whole = [Ask(partition=name) for name in found.possible[:room]]
    return [*whole, *smaller[: MOST - len(whole)]], found.possible[room:]


def shaped(resources: Resources, found: Choices, facts: Facts) -> list[Ask]:
    """Return requests for less, the most likely to help first."""
    first = found.possible[0] if found.possible else ""
    by_limit = [Ask(partition=name, minutes=limit) for name, limit in found.too_long.items()]
    if not first:
        return sorted(by_limit, key=lambda each: -(each.minutes or 0))
    partition = facts.partition(first)
    minutes = resources.minutes
    if minutes is None and partition is not None:
        minutes = partition.default_minutes or partition.max_minutes
    by_time = [Ask(partition=first, minutes=each) for each in shorter_times(minutes)]
    found_asks = sorted([*by_time, *by_limit], key=lambda each: -(each.minutes or 0))
    if resources.gpus and resources.gpus > 1:
        found_asks.insert(1, Ask(partition=first, gpus=resources.gpus // 2))
    nodes = re.match(r"\d+", resources.nodes or "")
    if nodes and int(nodes[0]) > 1:
        found_asks.insert(1, Ask(partition=first, nodes=int(nodes[0]) // 2))
    return found_asks


def shorter_times(minutes: int | None) -> list[int]:
    """Return a few shorter time limits, longest first: half, a third, and round ones."""
    if minutes is None or minutes < 2:
        return []
    found = {minutes // 2, *(each for each in ROUND_TIMES if each <= minutes // 2)}
    if len(found) < SMALLER:
        found.add(max(1, minutes // 3))
    return sorted(found, reverse=True)[:SMALLER]


def waits_for(live: Live, partition: LivePartition | None, resources: Resources, seconds: float | None) -> str:
    """Return what a request waits for; empty if it starts soon. `seconds`: its expected wait, None if unknown."""
    if seconds is not None and seconds <= SOON:
        return ""
    nodes = live.nodes if partition is None else partition.nodes
    parts = _reservations(live, resources, seconds)
    if resources.gpus:
        kinds = [each for each in nodes.gpus if resources.gpu_type in (None, each.type)]
        free, name = sum(each.free for each in kinds), resources.gpu_type or "GPU"
        if free < resources.gpus:
            total = sum(each.total for each in kinds)
            parts.append(f"{free or 'none'} of {total} {name if total == 1 or resources.gpu_type else 'GPUs'} free")
    least = re.match(r"\d+", resources.nodes or "")
    needed = (resources.cpus or 1) * max(resources.ntasks or 1, int(least[0]) if least else 1)
    if nodes.free_cpus < needed:
        parts.append(f"{nodes.free_cpus or 'none'} of {nodes.cpus} CPUs free")
    if resources.memory_mb and nodes.free_memory_mb is not None and nodes.free_memory_mb < resources.memory_mb:
        parts.append("too little memory free")
    pending = live.queue.pending if partition is None else partition.pending
    if pending:
        parts.append(f"{pending} pending job{'' if pending == 1 else 's'}")
    guess = "no node has enough free" if seconds is not None else "the site's answer has no time that can be read"
    return ", ".join(parts) or guess


def _reservations(live: Live, resources: Resources, seconds: float | None) -> list[str]:
    """Return reservations for others that are over when it starts, and would begin before it ended."""
    if seconds is None:
        return []
    start, length = live.at + seconds, (resources.minutes or 0) * 60
    found = []
    for each in live.reservations:
        if each.starts_at is None or each.ends_at is None or (each.usable and not each.maintenance):
            continue
        if each.starts_at < live.at + max(length, 1) and live.at < each.ends_at <= start + SOON:
            found.append(f"{'maintenance' if each.maintenance else 'reservation'} '{each.name}'")
    return found


BETTER = 0.8
"""A request for less is worth a line if it waits at most this share of the time."""


def starts(store: Store, wanted: Wanted, label: str, *, paths: Sequence[str] = ()) -> Starts:
    """Return the expected starts of a request on a context, in one request to its site, or from the last minute.

    `label`: of the project. `paths` must exist on the site. UnreachableError if it does not respond.
    """
    context = wanted.context
    backend = connect.backend(context)
    connect.check_responds(context, backend)
    facts = facts_if_probed(context)
    resources, _avoided = bad_nodes.avoiding(store, context.name, wanted.resources, facts)
    wanted = msgspec.structs.replace(wanted, resources=resources)
    address, key = recorded.address_of(context), _key(wanted, paths)
    known = cache.find(context.name, address, key)
    if known is None:
        known = _asked(store, wanted, facts, label, paths)
        cache.keep(address, key, known)
    return _now(known)


def _key(wanted: Wanted, paths: Sequence[str]) -> str:
    return f"{wanted.key}@{','.join([*wanted.only, *paths])}"


def _now(known: Starts) -> Starts:
    """Return answers of up to a minute ago as of now: waits are shorter by what has passed."""
    passed = max(0.0, time.time() - known.at)
    return msgspec.structs.replace(known, rows=[each.later(passed) for each in known.rows])


def _asked(store: Store, wanted: Wanted, facts: Facts | None, label: str, paths: Sequence[str]) -> Starts:
    context, resources = wanted.context, wanted.resources
    backend = connect.backend(context)
    folder = project_folder(context, facts, label)

    def check(shape: Resources) -> list[str]:
        needed = msgspec.structs.replace(shape, memory_mb=shape.memory_mb or wanted.memory_mb)
        return backend.runs.check(needed, facts, folder)

    if facts is None:
        problems = check(resources)
        found = Choices(possible=[] if problems else [""], impossible={"": "; ".join(problems)})
        asks, unasked = [Ask()] if not problems else [], list[str]()
    else:
        found = choices(resources, facts, check, wanted.only)
        asks, unasked = asks_for(resources, found, facts)
    accounts = facts.accounts if facts is not None else []
    if not asks and not paths:  # the facts say all
        rows = [_impossible(context.name, name, why) for name, why in found.impossible.items() if why]
        return Starts(context=context.name, at=time.time(), rows=rows)
    question = Question(resources=resources, options=wanted.options, asks=asks, folder=folder, paths=list(paths))
    forecast = backend.site.forecast(accounts, question)
    if forecast.live.silent:
        raise UnreachableError(
            f"{context.name}: Slurm does not respond ({forecast.live.silent})",
            code="slurm-not-responding",
            hint="run the command again later",
        )
    past = history(store, context.name, facts)
    own = partition_of_job(resources.partition, facts).split(",")
    rows = [
        _row(context.name, name, own=name in own, wanted=resources, forecast=forecast, past=past)
        for name in found.possible
        if name not in unasked
    ]
    rows += [_impossible(context.name, name, why) for name, why in found.impossible.items() if why]
    return Starts(
        context=context.name,
        at=time.time(),
        rows=sorted(rows, key=order),
        smaller=_smaller(context.name, rows, forecast.answers),
        record=past.record(context.name),
        clock=forecast.clock,
        unasked=unasked,
        absent=forecast.absent,
        pending={
            job.job: max(0.0, job.starts_at - forecast.clock - forecast.live.at)
            for job in forecast.live.queue.mine
            if job.state == "pending" and job.starts_at is not None
        },
    )


def order(row: ExpectedStart) -> tuple[bool, bool, float, bool, bool]:
    """Sort rows by start; unknown ones and those that cannot start come last."""
    return not row.possible, row.seconds is None, row.likely or 0.0, bool(row.preempted), not row.own


def _impossible(context: str, partition: str, why: str) -> ExpectedStart:
    return ExpectedStart(context=context, partition=partition, why_not=why)


def _row(context: str, name: str, *, own: bool, wanted: Resources, forecast: Forecast, past: History) -> ExpectedStart:
    live = next((each for each in forecast.live.partitions if each.name == name), None)
    answer = next((each for each in forecast.answers if each.ask == Ask(partition=name)), None)
    preempted = live.preempt if live is not None else ""
    made = ExpectedStart(context=context, partition=name, own=own, preempted=preempted)
    problem = _problem(live, answer)
    if problem or answer is None:
        return msgspec.structs.replace(made, why_not=problem or "the scheduler did not answer")
    why = waits_for(forecast.live, live, wanted, answer.seconds)
    if answer.seconds is None:
        return msgspec.structs.replace(made, waits_for=why)
    low, high = past.span(name, answer.seconds)
    return msgspec.structs.replace(made, seconds=answer.seconds, low=low, high=high, waits_for=why, nodes=answer.nodes)


def _problem(live: LivePartition | None, answer: Answer | None) -> str:
    if answer is not None and answer.refusal:
        return REJECTED + answer.refusal
    return live.why_not if live is not None and not live.usable else ""


def _smaller(context: str, rows: Sequence[ExpectedStart], answers: Sequence[Answer]) -> list[SmallerRequest]:
    """Return the requests for less that start clearly earlier: of each kind the largest that starts soon."""
    whole = min((row.seconds for row in rows if row.possible and row.seconds is not None), default=None)
    found: dict[str, SmallerRequest] = {}
    for answer in answers:
        ask, seconds = answer.ask, answer.seconds
        if not ask.shaped or seconds is None or (whole is not None and seconds > BETTER * whole - SOON / 2):
            continue
        kind = "time" if ask.minutes else "gpus" if ask.gpus else "nodes"
        before = found.get(kind)
        if before is not None and (before.seconds <= SOON or before.seconds <= seconds):
            continue
        found[kind] = SmallerRequest(
            context=context,
            partition=ask.partition,
            minutes=ask.minutes,
            gpus=ask.gpus,
            nodes=ask.nodes,
            seconds=seconds,
        )
    return list(found.values())
