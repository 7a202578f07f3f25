"""retry: a new run of an old run's plan: the same code, parameters and settings, except for what is asked anew."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from yurt import __version__
from yurt.config import contexts, paths
from yurt.errors import NotFoundError, RefusedError, UserError, YurtError
from yurt.lifecycle import bad_nodes
from yurt.lifecycle.plan import checks, scheduling
from yurt.lifecycle.plan.command import RIVALS
from yurt.lifecycle.plan.plan import person
from yurt.lifecycle.plan.request import Planned
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.model import ids, layout
from yurt.model.progress import Watch, unwatched
from yurt.model.resources import parse_memory, parse_time
from yurt.model.run import Chosen, Plan, RestartPolicy
from yurt.model.tasks import ranges
from yurt.sites import folders
from yurt.sites.facts import facts_if_probed
from yurt.sites.project import Project
from yurt.store import Entry, Store
from yurt.verbs.result import Result
from yurt.verbs.steps import STEPS

FAILED = ("failed", "timeout", "out_of_memory", "node_failed", "lost")
"""Ends after which one tries again; who cancels a run does not want it."""


class Anew(msgspec.Struct, frozen=True):
    """What a retry changes; None leaves it as it was."""

    time: str | None = None
    mem: str | None = None


UNCHANGED = Anew()


def retry(
    names: Sequence[str] = (),
    *,
    failed: bool = False,
    filters: Sequence[str] = (),
    context: str = "",
    anew: Anew = UNCHANGED,
    on_kept: Callable[[str], None] = lambda _run: None,
    watch: Watch = unwatched,
) -> Result[list[Entry]]:
    """Run ended runs once more: those named, or what failed of this project. With filters, those tasks of sweeps.

    Those that a site refuses are warnings, unless all are. Nothing is sent unless all of them can be planned.
    """
    from yurt.lifecycle.outbox.enqueue import enqueue
    from yurt.lifecycle.select import check, picked, which

    index = folders.store()
    project = Project().label
    maybe = which(index, names) if names else unfinished(index, project, context)
    if filters:
        check(maybe)
    warnings = refresh_unfinished(index, maybe, watch=watch)
    entries = which(index, [entry.run.id for entry in maybe]) if names else failed_runs(index, project, context)
    for entry in entries:
        if context not in ("", entry.run.context):
            raise UserError(
                f"run {entry.run.id} was on {entry.run.context}; a retry stays on its context",
                code="usage",
                hint=f"yurt retry {entry.run.id}",
            )
    picks = {entry.run.id: tasks for entry, tasks in picked(index, entries, filters)} if filters else None
    plans = [
        plan(index, entry, anew, tasks=tasks, watch=watch)
        for entry, tasks in wanted(index, entries, failed=failed, picks=picks)
    ]
    sent: list[Entry] = []
    refused: list[YurtError] = []
    for planned in plans:
        run = planned.plan.run
        on_kept(run.id)
        try:
            entry, said = enqueue(index, contexts.named(run.context), planned, watch=watch)
            sent.append(entry)
            warnings += said
        except RefusedError as error:  # of one: the others may be well
            refused.append(error)
            warnings.append(f"run {run.retry_of} was not retried: {error.message}")
    if refused and not sent:
        raise refused[0]
    code = refused[0].exit_code if refused else 0
    return Result(kind="runs-retried", data=sent, warnings=warnings, exit_code=code)


def failed_runs(store: Store, project: str, context: str = "") -> list[Entry]:
    """Runs of a project that failed, the oldest first."""
    where = {"project": [project], "state": FAILED, **({"context": [context]} if context else {})}
    return list(store.newest(where=where))[::-1]


def unfinished(store: Store, project: str, context: str = "") -> list[Entry]:
    """Runs of a project that may have failed by now."""
    where = {"project": [project], **({"context": [context]} if context else {})}
    return list(store.newest(where=where, unfinished=True))


def refresh_unfinished(store: Store, entries: Sequence[Entry], *, watch: Watch = unwatched) -> list[str]:
    """Look at the sites of those that have not ended as far as is known; returns what to warn of."""
    names = sorted({entry.run.context for entry in entries if not entry.status.final})
    return refresh_contexts(store, names, watch=watch, steps=STEPS).warnings if names else []


def failed_tasks(store: Store, entry: Entry) -> list[int]:
    """Which tasks of a sweep failed and have not been retried."""
    failed = {number for number, state in store.task_states(entry.run.id).items() if state in FAILED}
    return sorted(failed - store.retried_tasks(entry.run.id)) if failed else []


def wanted(
    store: Store, entries: Sequence[Entry], *, failed: bool, picks: Mapping[str, Sequence[int]] | None = None
) -> Iterator[tuple[Entry, list[int] | None]]:
    """What is to be run once more, and which of its tasks; None: all of it.

    `failed`: only what failed and has not been retried. `picks`: of sweeps, only these tasks.
    """
    for entry in entries:
        if not entry.run.tasks:
            if not failed or (entry.status.state in FAILED and not store.retries(entry.run.id)):
                yield entry, None
            continue
        tasks = None if picks is None else list(picks.get(entry.run.id, ()))
        if failed:
            wrong = failed_tasks(store, entry)
            tasks = wrong if tasks is None else sorted({*tasks} & {*wrong})
        if tasks is None or tasks:
            yield entry, tasks


def plan(
    store: Store, entry: Entry, anew: Anew, *, tasks: Sequence[int] | None = None, watch: Watch = unwatched
) -> Planned:
    """Plan another run like an ended one, and check it against what is known of its site now. Nothing is sent.

    `tasks` of a sweep: only those. A task becomes a sweep of one.
    """
    run = entry.run
    if run.task is not None:
        tasks = [run.task]
    _check_ended(store, entry, tasks)
    old = store.plan(run.sweep or run.id)
    whole = old.run if old is not None else run
    if old is not None and tasks is not None:
        chosen = [old.sets[number] for number in tasks]
        old = msgspec.structs.replace(old, sets=chosen, run=msgspec.structs.replace(old.run, tasks=len(chosen)))
    if old is None:
        raise NotFoundError(
            f"how run {run.id} was made is not known on this machine",
            code="not-found",
            hint=f"yurt import {run.context}",
        )
    context = contexts.named(run.context)
    if context.type != run.context_type:
        raise RefusedError(
            f"run {run.id} was on a {run.context_type} context, and '{context.name}' is a {context.type} one now",
            code="impossible",
            hint=f"yurt context show {context.name}",
        )
    facts = facts_if_probed(context, watch=watch)
    made = _changed(old, anew)
    checks.check(context, made.run.resources, facts, label=run.project, watch=watch)
    if run.secrets:
        checks.check_secrets(run.secrets, {}, {})
    resources, _nodes = bad_nodes.avoiding(store, context.name, made.run.resources, facts)
    created = time.time()
    sweep = bool(old.sets)
    run_id = (ids.make_sweep if sweep else ids.make)(created, int.from_bytes(os.urandom(4)))
    fresh = msgspec.structs.replace(
        made.run,
        id=run_id,
        folder=(layout.sweep if sweep else layout.run)(old.project_folder, run_id),
        created=created,
        retry_of=run.id,
        retried=ranges(tasks) if tasks is not None and run.task is None else "",
        resources=resources,
        user=context.user_id or person(),
        host=os.uname().nodename,
        yurt_version=__version__,
    )
    if old.calls:
        from yurt.lifecycle.outbox import calls

        calls.hand_on(store, whole, tasks, run_id)
    return Planned(msgspec.structs.replace(made, run=fresh, store=_code_here(old)), [])


def _check_ended(store: Store, entry: Entry, tasks: Sequence[int] | None) -> None:
    """RefusedError for a run that has not ended; of a sweep, only those of its tasks count that are wanted again."""
    run, state, hint = entry.run.id, entry.status.state, "yurt cancel"
    if entry.status.final:
        return
    if entry.run.tasks and tasks is not None:
        known = store.several([ids.task(run, number) for number in tasks])
        going = next((task for task in known if not task.status.final), None)
        if going is None:
            return
        run, state, hint = going.run.id, going.status.state, f"yurt wait {run}, or --filter state=failed; yurt cancel"
    raise RefusedError(f"run {run} has not ended: it is {state}", code="run-not-finished", hint=f"{hint} {run}")


def _code_here(old: Plan) -> str:
    """Where this machine has the code, if it has: the plan may have been made on another one."""
    return old.store if Path(old.store).is_dir() else str(paths.data_home() / "code" / f"{old.run.project}.git")


def _changed(old: Plan, anew: Anew) -> Plan:
    """A plan with other limits. What the old one said of them in sbatch's own words gives way."""
    resources, settings, policy = old.run.resources, list(old.run.settings), old.run.restart_policy
    limit, gone = old.limit, set[str]()
    if anew.time is not None:
        minutes = _read("time", anew.time, parse_time)
        resources = msgspec.structs.replace(resources, minutes=minutes)
        settings = _chosen(settings, "time", anew.time)
        policy, limit = _with_signal(old, minutes), minutes * 60
        gone.add("time")
    if anew.mem is not None:
        resources = msgspec.structs.replace(resources, memory_mb=_read("mem", anew.mem, parse_memory))
        settings = _chosen(settings, "resources", {**_value(settings, "resources"), "mem": anew.mem})
        gone.update(RIVALS["mem"])
    options = scheduling.without(old.native_options, gone)
    run = msgspec.structs.replace(old.run, resources=resources, settings=settings, restart_policy=policy)
    return msgspec.structs.replace(old, run=run, native_options=options, limit=limit)


def _read(option: str, text: str, parse: Callable[[str], int]) -> int:
    try:
        return parse(text)
    except ValueError as error:
        raise UserError(f"--{option} {error}, not '{text}'", code="usage", hint="yurt retry --help") from None


def _with_signal(old: Plan, minutes: int) -> RestartPolicy:
    """When it is told to save: as long before its new limit, or what is usual if it was so before."""
    policy = old.run.restart_policy
    if not policy.signal_before:
        return policy
    usual = old.limit is not None and policy.signal_before == min(120, old.limit // 4)
    before = min(120, minutes * 15) if usual else policy.signal_before
    if before >= minutes * 60:
        raise UserError(
            f"run {old.run.id} is told to save {before} s before its limit, and --time is {minutes * 60} s",
            code="usage",
            hint=f"--time {before // 60 + 1}m",
        )
    return msgspec.structs.replace(policy, signal_before=before)


def _value(settings: Sequence[Chosen], key: str) -> Any:
    return next((each.value for each in settings if each.key == key), {})


def _chosen(settings: Sequence[Chosen], key: str, value: Any) -> list[Chosen]:
    """Settings of which one was given as a flag now; it keeps its place."""
    new = Chosen(key, value, "flag")
    changed = [new if each.key == key else each for each in settings]
    return changed if new in changed else [*changed, new]
