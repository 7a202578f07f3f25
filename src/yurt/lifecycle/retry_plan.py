"""Plans a retry of one run: the same code, parameters and settings, or new limits or environments."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from yurt import __version__
from yurt.backends.kinds import kind_of
from yurt.config import contexts
from yurt.contexts import bad_nodes, folders
from yurt.contexts.facts import facts_if_probed
from yurt.contexts.person import person
from yurt.contexts.project import Project, code_folder
from yurt.errors import RefusedError, UserError
from yurt.lifecycle.plan import scheduling, settle
from yurt.lifecycle.plan.command import RIVALS
from yurt.lifecycle.plan.request import Planned
from yurt.lifecycle.plan.resolve import check_secrets
from yurt.model import hostlist, ids, layout, time_limit
from yurt.model.again import again
from yurt.model.context import Context
from yurt.model.facts import Facts
from yurt.model.params import shown
from yurt.model.progress import Watch, unwatched
from yurt.model.resources import parse_gpus, parse_memory, parse_time
from yurt.model.run import Chosen, Code, Plan, RestartPolicy, Run
from yurt.model.tasks import ranges
from yurt.store import Entry, Store

_Value = TypeVar("_Value")


class Anew(msgspec.Struct, frozen=True):
    """What a retry changes; None keeps the old limit, resource or environment."""

    time: str | None = None
    mem: str | None = None
    gpus: str | None = None
    exclude_node: str = ""
    """Nodes that the retry must not use, beside those of the old run."""
    venv: str | None = None
    """Also replaces the conda environment of the old run, as `conda` replaces its virtual environment."""
    conda: str | None = None
    container: str | None = None
    code_now: bool = False
    """Whether to take a new snapshot of the project instead of the old code."""
    secrets: tuple[str, ...] = ()
    """The secrets that are sent again although a site's records name them."""


UNCHANGED = Anew()


def plan(
    store: Store,
    entry: Entry,
    anew: Anew,
    *,
    tasks: Sequence[int] | None = None,
    candidate: bool = False,
    watch: Watch = unwatched,
) -> Planned:
    """Plan a retry of a finished run, and check it against the current facts of its site. Submits nothing.

    `tasks`: only these tasks of a sweep. A task becomes a sweep with one task. `candidate`: it is one of a race that
    has finished, and may still be withdrawn.
    """
    from yurt.lifecycle.select import no_plan

    run = entry.run
    if run.purpose != "run":
        what = "dev node" if run.purpose == "dev" else run.purpose
        raise UserError(
            f"run {run.id} is a {what}, which cannot be retried",
            code="usage",
            hint=f"start it again with `{again(run)}`",
        )
    if run.task is not None:
        tasks = [run.task]
    if not candidate:
        check_finished(store, entry, tasks)
    old = _settled(store, run, watch)
    whole = old.run if old is not None else run
    if old is not None and tasks is not None:
        chosen = [old.sets[number] for number in tasks]
        old = msgspec.structs.replace(old, sets=chosen, run=msgspec.structs.replace(old.run, tasks=len(chosen)))
    if old is None:
        raise no_plan(run.sweep or run.id)
    context = contexts.site(run.context)
    if context.type != run.context_type:
        raise RefusedError(
            f"run {run.id} needs a {run.context_type} context, but '{context.name}' is now a {context.type} context",
            code="impossible",
            hint=f"see the context with `yurt context show {context.name}`",
        )
    facts = facts_if_probed(context, watch=watch)
    made, notes = _with_environment(_changed(old, anew), anew, context, facts)
    notes += time_limit.rounded(run.context_type, made.run.resources.minutes, anew.time)
    settle.check(context, made.run.resources, facts, label=run.project, watch=watch)
    if run.secrets:
        _check_imported(old, anew)
        check_secrets(run.secrets, {}, {})
    resources, avoided = bad_nodes.avoiding(store, context.name, made.run.resources, facts)
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
        settings=[*made.run.settings, *bad_nodes.as_settings(avoided)],
        user=context.user_id or person(),
        host=os.uname().nodename,
        yurt_version=__version__,
    )
    if old.calls:
        from yurt.lifecycle.outbox import calls

        calls.hand_on(store, whole, tasks, run_id)
    if not anew.code_now or not run.code.tree:
        return Planned(
            msgspec.structs.replace(made, run=fresh, store=str(code_folder(old.run.project)), imported=False), notes
        )
    project = _project_of(run)
    code, warnings = _code_now(project, context, watch)
    fresh = msgspec.structs.replace(fresh, code=code, source=shown(str(project.folder)))
    return Planned(
        msgspec.structs.replace(made, run=fresh, store=str(project.code), imported=False), [*notes, *warnings]
    )


def _settled(store: Store, run: Run, watch: Watch) -> Plan | None:
    """Return the plan of a run. One that ended before its site was reached is completed with the facts of the site."""
    whole = run.sweep or run.id
    if draft := store.draft(whole):
        return settle.settle_later(draft, contexts.site(run.context), store, watch).plan
    return store.plan(whole)


def _check_imported(old: Plan, anew: Anew) -> None:
    """UserError if the secrets of an imported run are not all named: anyone who can write its records chose them."""
    missing = [name for name in old.run.secrets if name not in anew.secrets] if old.imported else []
    if missing:
        raise UserError(
            f"run {old.run.id} was imported, and its records on {old.run.context} name secrets of this machine: "
            f"{', '.join(missing)}",
            code="not-confirmed",
            hint="to send them there, add " + " ".join(f"`--secret {name}`" for name in missing),
        )


def _project_of(run: Run) -> Project:
    """Return the project around the working directory. UserError if the run is of another one."""
    project = Project()
    if not layout.same_folder(run.project, project.label):
        raise UserError(
            f"run {run.id} is of the project '{run.project}', not of the working directory; --code now needs its files",
            code="usage",
            hint=f"change to its folder with `cd {shlex.quote(run.source)}`, then retry it",
        )
    return project


def _code_now(project: Project, context: Context, watch: Watch) -> tuple[Code, list[str]]:
    from yurt.config import precedence
    from yurt.config.project import is_of_project
    from yurt.lifecycle.plan.code import snapshot_of

    settings = precedence.resolve(context, {})
    now, by_project = precedence.as_context(context.name, settings), is_of_project(settings["paths_to_copy"].source)
    return snapshot_of(project, now, include=(), exclude=(), largest_file=None, by_project=by_project, watch=watch)


def check_finished(store: Store, entry: Entry, tasks: Sequence[int] | None) -> None:
    """Raise RefusedError if the run, or one of these tasks of a sweep, has not finished."""
    run, state = entry.run.id, entry.status.state
    if entry.status.final:
        return
    hint = f"wait for it with `yurt wait {run}`, or cancel it with `yurt cancel {run}`"
    if entry.run.tasks and tasks is not None:
        known = store.several([ids.task(run, number) for number in tasks])
        unfinished_task = next((task for task in known if not task.status.final), None)
        if unfinished_task is None:
            return
        hint = f"wait with `yurt wait {run}`, or retry only failed tasks with `--filter state=failed`"
        run, state = unfinished_task.run.id, unfinished_task.status.state
    raise RefusedError(f"run {run} has not finished: it is {state}", code="run-not-finished", hint=hint)


def _changed(old: Plan, anew: Anew) -> Plan:
    """Return the plan with new limits and resources; they replace sbatch options of the old plan for the same."""
    resources, settings, policy = old.run.resources, list(old.run.settings), old.run.restart_policy
    limit, gone = old.limit, set[str]()
    if anew.time is not None:
        minutes = _read("time", anew.time, parse_time)
        resources = msgspec.structs.replace(resources, minutes=minutes)
        settings = _chosen(settings, "time", anew.time)
        limit = time_limit.seconds(old.run.context_type, minutes, anew.time) or 0
        policy = _with_signal(old, limit)
        gone.add("time")
    if anew.mem is not None:
        resources = msgspec.structs.replace(resources, memory_mb=_read("mem", anew.mem, parse_memory))
        settings = _chosen(settings, "resources", {**_value(settings, "resources"), "mem": anew.mem})
        gone.update(RIVALS["mem"])
    if anew.gpus is not None:
        kind, count = _read("gpus", anew.gpus, parse_gpus)
        resources = msgspec.structs.replace(resources, gpus=count, gpu_type=kind)
        settings = _chosen(settings, "resources", {**_value(settings, "resources"), "gpu": anew.gpus})
        gone.update(RIVALS["gres"])
    if anew.exclude_node:
        nodes = _excluded(old, anew.exclude_node)
        resources = msgspec.structs.replace(resources, exclude_nodes=nodes)
        avoided = [each for each in settings if each.source == bad_nodes.AVOIDED]
        others = [each for each in settings if each.key != "exclude_nodes"]
        settings = [*others, *avoided, Chosen("exclude_nodes", nodes, "flag")]
        gone.add("exclude")
    options = scheduling.without(old.native_options, gone)
    run = msgspec.structs.replace(old.run, resources=resources, settings=settings, restart_policy=policy)
    return msgspec.structs.replace(old, run=run, native_options=options, limit=limit)


def _excluded(old: Plan, nodes: str) -> str:
    """Return the nodes that a retry does not use: those of the old run, and these. UserError if it cannot be."""
    run = old.run
    if not kind_of(run.context_type).scheduler:
        hint = f"run it again with `{again(run)}`"
        raise UserError(f"--exclude-node cannot be used on {run.context}, which has no nodes", code="usage", hint=hint)
    required = run.resources.nodelist or ""
    if pinned := [each for each in nodes.split(",") if required and hostlist.contains(required, each)]:
        raise UserError(
            f"run {run.id} requires node {pinned[0]} (--nodelist {required}), which --exclude-node excludes",
            code="usage",
            hint=f"run it again with `{again(run)}`, or submit it again with `yurt run` and another `--nodelist`",
        )
    by_name = scheduling.value_of("exclude", old.native_options)
    return ",".join(dict.fromkeys(each for each in (run.resources.exclude_nodes, by_name, nodes) if each))


def _with_environment(made: Plan, anew: Anew, context: Context, facts: Facts | None) -> tuple[Plan, list[str]]:
    """Return the plan with another environment, and warnings. Paths are expanded for the site, as in `run`.

    An empty text removes the environment of the old run.
    """
    given = {key: text for key in ("venv", "conda", "container") if (text := getattr(anew, key)) is not None}
    if not given:
        return made, []
    replaced = {"venv", "conda", *given} if {"venv", "conda"} & set(given) else set(given)
    wanted, warnings = settle.in_home_of_site(
        msgspec.structs.replace(context, **{key: given.get(key) for key in replaced}), facts
    )
    texts = {key: getattr(wanted, key) or "" for key in replaced}
    paths = {key: text for key, text in texts.items() if key == "venv" or text[:1] in ("~", "$")}
    setup = texts | {key: folders.expand(context, facts, text, key) for key, text in paths.items() if text}
    if "container" in setup:
        setup["pyxis"] = settle.pyxis_image(setup["container"], facts)
    settings = [each for each in made.run.settings if each.key not in replaced]
    settings += [Chosen(key, text, "flag") for key, text in given.items() if text]
    run = msgspec.structs.replace(made.run, settings=settings, env=None)
    setup["env"] = ""  # yurt builds none for a run that has one of its own
    setup_now = msgspec.structs.replace(made.setup, **setup)
    return msgspec.structs.replace(made, run=run, setup=setup_now, packages={}), warnings


def _read(option: str, text: str, parse: Callable[[str], _Value]) -> _Value:
    try:
        return parse(text)
    except ValueError as error:
        example = {"time": "2h", "mem": "8G", "gpus": "a100:1"}[option]
        raise UserError(
            f"--{option} {error}, not '{text}'", code="usage", hint=f"for example: `--{option} {example}`"
        ) from None


def _with_signal(old: Plan, limit: int) -> RestartPolicy:
    """Return the policy with the signal as long before the new limit; the default interval stays the default."""
    policy = old.run.restart_policy
    if not policy.signal_before:
        return policy
    usual = old.limit is not None and policy.signal_before == max(1, min(120, old.limit // 4))
    before = max(1, min(120, limit // 4)) if usual else policy.signal_before
    if before >= limit:
        least = before // 60 + 1
        raise UserError(
            f"--time ({limit} s) must be longer than --signal-before of run {old.run.id} ({before} s)",
            code="usage",
            hint=f"use `--time {least}m` or more",
        )
    return msgspec.structs.replace(policy, signal_before=before)


def _value(settings: Sequence[Chosen], key: str) -> Any:
    return next((each.value for each in settings if each.key == key), {})


def _chosen(settings: Sequence[Chosen], key: str, value: Any) -> list[Chosen]:
    """Return the settings with one of them replaced, or added, as given by a flag."""
    new = Chosen(key, value, "flag")
    changed = [new if each.key == key else each for each in settings]
    return changed if new in changed else [*changed, new]
