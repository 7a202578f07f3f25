"""When a request would start on one context: from its facts, its scheduler, and the waits of earlier runs."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

from yurt.config import facts as recorded
from yurt.contexts import bad_nodes, connect
from yurt.contexts.facts import facts_if_probed
from yurt.contexts.folders import project_folder
from yurt.errors import UnreachableError
from yurt.model.facts import Facts, partition_of_job
from yurt.model.live import LivePartition
from yurt.model.run import Resources
from yurt.model.where import REJECTED, SOON, Answer, Ask, ExpectedStart, Forecast, Question, SmallerRequest, Starts
from yurt.store import Store
from yurt.where import cache, shapes
from yurt.where.causes import waits_for
from yurt.where.history import History, history
from yurt.where.wanted import Wanted

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
        found = shapes.Choices(possible=[] if problems else [""], impossible={"": "; ".join(problems)})
        asks, unasked = [Ask()] if not problems else [], list[str]()
    else:
        found = shapes.choices(resources, facts, check, wanted.only)
        asks, unasked = shapes.asks(resources, found, facts)
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
