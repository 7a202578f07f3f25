"""Turns a request into a plan: a value that can be printed, stored, and submitted any number of times.

Nothing is submitted here, and only the snapshot store on this machine is written.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from yurt import __version__
from yurt.backends.job.variables import variables_of
from yurt.clocks import clocks
from yurt.config import facts as recorded_facts
from yurt.config.precedence import Setting
from yurt.config.project import is_of_project
from yurt.contexts.person import person
from yurt.contexts.project import Project
from yurt.envs.of_runs import choose
from yurt.errors import UnreachableError
from yurt.lifecycle.plan import arguments, command, holders, settle, staging
from yurt.lifecycle.plan.arguments import Given
from yurt.lifecycle.plan.code import snapshot_of, writable_folders
from yurt.lifecycle.plan.request import Planned, Request
from yurt.lifecycle.plan.resolve import Resolved, declared, resolve
from yurt.lifecycle.plan.settle import Draft
from yurt.model import ids, params, time_limit
from yurt.model.context import Context
from yurt.model.facts import Facts
from yurt.model.progress import Watch, unwatched
from yurt.model.run import Chosen, Code, Holder, Plan, Run
from yurt.model.settings import TABLE
from yurt.model.stage import StageRequest
from yurt.store import Store


def plan(
    context: Context,
    request: Request,
    *,
    project: Project | None = None,
    index: Store | None = None,
    offline: bool = True,
    watch: Watch = unwatched,
) -> Planned:
    """Plan a run. UserError and RefusedError say what is impossible, and suggest the closest alternative.

    `project` defaults to the one around the working directory, with the name that the request gives it. With an
    `index`, nodes on which earlier runs failed are avoided. `offline`: if the site is unreachable and its facts are not
    known, the result is a draft; else UnreachableError.
    """
    asked = resolve(context, request, project or Project(request.project))
    facts, unreachable = _facts(asked, offline=offline, watch=watch)
    environment, about_env = declared(asked)
    given = _given(asked.command.argv, asked.request)
    code, about_code = _code(asked, watch)
    made = _made(asked, _run(asked, given, code), given)
    if environment is not None:
        made = msgspec.structs.replace(made, sources=choose.sources(environment, asked.project))
    draft = Draft(
        made,
        msgspec.structs.replace(asked.context, variables={}),
        asked.needs,
        b"" if environment is None else msgspec.json.encode(environment),
        asked.request.calls_python,
        staging.requested(asked.request.stage) if asked.program is None else StageRequest(),
    )
    planned = settle.unsettled(draft, unreachable) if unreachable else settle.settle(draft, facts, index, watch)
    planned = holders.on_the_node(planned)
    variables = variables_of(planned.plan)
    arguments.check_size(given.words, variables)
    arguments.check_sets(made.sets, given.words, variables, passed=made.arguments)
    warnings = [
        *planned.warnings,
        *([] if asked.kind.scheduler else _without_scheduler(request.flags, hold=request.hold)),
        *_not_passed(made),
        *about_env,
        *asked.about_script,
        *about_code,
    ]
    return msgspec.structs.replace(planned, warnings=warnings)


def check(context: Context, request: Request) -> None:
    """Raise the errors of `plan` that are known before the first submission.

    UserError: a setting is invalid. RefusedError: the site cannot provide the resources, by its recorded facts. The
    site is queried only to confirm that; if it is unreachable, or was never probed, `plan` decides.
    """
    asked = resolve(context, request, Project())
    wanted, needs = asked.context, asked.needs
    settle.with_signal(request.restart_policy, time_limit.seconds(wanted.type, needs.resources.minutes, wanted.time))
    declared(asked)
    facts = recorded_facts.load(wanted) if asked.kind.probed else None
    if asked.kind.here or facts is not None:
        with suppress(UnreachableError):
            settle.check(wanted, needs.checked, facts, label=asked.project.label, watch=unwatched)


def _facts(asked: Resolved, *, offline: bool, watch: Watch) -> tuple[Facts | None, UnreachableError | None]:
    """Return facts of the site that allow the run, or why there are none."""
    try:
        return settle.facts_for(asked.context, asked.needs, asked.project.label, watch), None
    except UnreachableError as error:
        if not offline:
            raise
        return None, error


def _given(argv: list[str], request: Request) -> Given:
    """Return the command with the parameters of a request. The script decides their style only if nothing else does."""
    style = "options" if request.calls else request.style or ("options" if request.spec else "")
    return arguments.given(argv, request.arguments, request.params, request.sets, typed=request.typed, style=style)


def _code(asked: Resolved, watch: Watch) -> tuple[Code, list[str]]:
    """Return the snapshot of the project, if the run has one, and warnings about it."""
    request = asked.request
    if not request.snapshot:
        return Code(), []
    return snapshot_of(
        asked.project,
        asked.context,
        include=request.include,
        exclude=request.exclude,
        largest_file=request.largest_file,
        named=[] if request.calls else [*request.words, *request.arguments],
        by_project=is_of_project(asked.settings["paths_to_copy"].source),
        watch=watch,
    )


def _run(asked: Resolved, given: Given, code: Code) -> Run:
    """Return the record of the run."""
    request, project, wanted, program = asked.request, asked.project, asked.context, asked.program
    created = time.time()
    run_id = (ids.make_sweep if request.sets else ids.make)(created, int.from_bytes(os.urandom(4)))
    shown = [request.calls] if request.calls else [*request.words, *request.arguments, *given.extra]
    return Run(
        id=run_id,
        context=wanted.name,
        context_type=wanted.type,
        project=project.label,
        source=params.shown(str(project.folder)),
        created=created,
        command=[params.shown(word) for word in (shown if program is None else program.shown)],
        folder="",
        purpose="run" if program is None else program.purpose,
        name=params.shown(request.name),
        params=arguments.jsonable(given.typed),
        tags=[params.shown(tag) for tag in dict.fromkeys([*wanted.tags, *request.tags])],
        note=params.shown(request.note),
        subfolder=project.subfolder if request.snapshot else "",
        resources=asked.needs.resources,
        code=code,
        restart_policy=request.restart_policy,
        tasks=len(request.sets),
        after=list(request.after),
        secrets=asked.secrets,
        home_sync=asked.needs.home_sync,
        settings=_chosen(asked.settings),
        user=wanted.user_id or person(),
        host=os.uname().nodename,
        yurt_version=__version__,
    )


def _made(asked: Resolved, run: Run, given: Given) -> Plan:
    """Return the plan of a run, without what depends on the facts of its site."""
    request, project, program = asked.request, asked.project, asked.program
    by_flag = request.flags.get("variables") or ()
    variables = arguments.variables(asked.context, given.values, by_flag)
    mrunner = _asks_as_mrunner(request, asked.context.variables.get("PYTHONPATH", ""))
    return Plan(
        run=run,
        project_folder="",
        store=str(project.code),
        words=[os.fsencode(word) for word in (given.words if program is None else program.words)],
        variables=variables if program is None else {**variables, **program.variables},
        native_options=asked.needs.options,
        native_lines=asked.needs.lines,
        lease=clocks().lease,
        grace=clocks().grace,
        place=str(project.folder / project.subfolder) if asked.in_place else "",
        copy=request.copy or program is not None,
        writable=writable_folders(asked.context),
        sets=[arguments.jsonable(each) for each in request.sets],
        arguments=request.pass_sets and not mrunner,
        array=request.array,
        logs=command.logs_of(asked.command.sbatch),
        mrunner=mrunner,
        parallel=request.parallel,
        calls=bool(request.calls),
        calls_per_process=request.calls_per_process,
        holder=Holder(clocks().first_session, clocks().next_session) if request.session else None,
    )


def _asks_as_mrunner(request: Request, python_path: str) -> bool:
    """Return whether the script of a spec file loads its parameters from a file, as under mrunner."""
    if not request.spec:
        return False
    from yurt.lifecycle.plan import mrunner_script

    keys = {key for each in request.sets for key in each}
    return mrunner_script.asks(request.words, keys, helpers=request.spec == "mrunner", python_path=python_path)


def _without_scheduler(flags: Mapping[str, Any], *, hold: bool) -> list[str]:
    """Return one warning about options that need a scheduler."""
    given = [row.key for row in TABLE if row.scheduler and row.key and flags.get(row.key)]
    given += ["hold"] if hold else []
    return [f"{', '.join(given)} ignored: this machine has no scheduler"] if given else []


def _not_passed(made: Plan) -> list[str]:
    """Return a warning about Python objects that a script cannot get as arguments."""
    sets = made.sets if made.arguments else []
    names = sorted({key for each in sets for key, value in each.items() if params.has_pickled(value)})
    if not names:
        return []
    if len(names) == 1:
        what, how = f"parameter {names[0]} is a Python object", "is not passed as an argument"
    else:
        what, how = f"parameters {', '.join(names)} are Python objects", "are not passed as arguments"
    return [f"{what} of the spec file and {how}; only get_configuration() of mrunner loads them"]


def _chosen(settings: Mapping[str, Setting]) -> list[Chosen]:
    given = (each for each in settings.values() if each.source != "default" and each.key not in ("type", "lab"))
    return [Chosen(each.key, arguments.jsonable(each.value), each.source) for each in given]
