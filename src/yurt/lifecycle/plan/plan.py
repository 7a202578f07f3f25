"""Turns a request into a plan: a value that can be printed, stored, and submitted any number of times.

Nothing is submitted here, and only the snapshot store on this machine is written.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from yurt import __version__
from yurt.backends.job.variables import variables_of
from yurt.backends.kinds import Kind, kind_of
from yurt.clocks import clocks
from yurt.config import facts as recorded_facts
from yurt.config import precedence
from yurt.config.precedence import Setting
from yurt.config.project import is_of_project
from yurt.errors import UnreachableError, UserError
from yurt.lifecycle.env import choose
from yurt.lifecycle.plan import arguments, checks, command, holders, scheduling, settle, staging
from yurt.lifecycle.plan.arguments import Given
from yurt.lifecycle.plan.code import snapshot_of, writable_folders
from yurt.lifecycle.plan.request import Planned, Request, Unsettled
from yurt.lifecycle.plan.scheduling import Needs
from yurt.lifecycle.plan.settle import Draft
from yurt.model import ids, params, time_limit
from yurt.model.context import Context
from yurt.model.progress import Watch, unwatched
from yurt.model.run import Chosen, Code, Holder, Plan, Run
from yurt.model.settings import TABLE
from yurt.model.stage import StageRequest
from yurt.sites.person import person
from yurt.sites.project import Project
from yurt.store import Store

if TYPE_CHECKING:
    from yurt.envs.declared import Declared


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
    project = project or Project(request.project)
    settings = precedence.resolve(context, request.flags, request.entry)
    wanted = precedence.as_context(context.name, settings)
    kind = kind_of(wanted.type)
    _check_output_size(wanted, request)
    in_place = not request.snapshot and kind.here and request.dev is None
    _check_text(settings, project, in_place=in_place)
    holding = holders.words(request)
    words = request.words or holding
    what = command.read(words, project)
    about_script = command.check_inside(words, project, here=kind.here) if request.snapshot else []
    if what.sbatch is not None:
        request = command.with_script(request, what.sbatch)
    _check_parallel(request)
    needs = scheduling.needs_of(wanted, request, settings, what.sbatch)
    secrets = _secrets(wanted, request, needs, kind)
    facts, unreachable = None, None
    try:
        facts = settle.facts_for(wanted, needs, project.label, watch)
    except UnreachableError as error:
        if not offline:
            raise
        unreachable = error
    declared, about_env = _declared(wanted, request, what, project)
    given = arguments.given(what.argv, request)
    by_project = is_of_project(settings["paths_to_copy"].source)
    code, about_code = _code(project, wanted, request, by_project, watch)
    mrunner = _asks_as_mrunner(wanted, request)
    made = Plan(
        run=_run(project, wanted, request, settings, needs=needs, given=given, code=code, secrets=secrets),
        project_folder="",
        store=str(project.code),
        words=[os.fsencode(word) for word in (holding or given.words)],
        variables={**arguments.variables(wanted, given.values, request), **holders.variables(request)},
        native_options=needs.options,
        native_lines=needs.lines,
        lease=clocks().lease,
        grace=clocks().grace,
        place=str(project.folder / project.subfolder) if in_place else "",
        copy=request.copy or bool(holding),
        writable=writable_folders(wanted),
        sets=[arguments.jsonable(each) for each in request.sets],
        arguments=request.pass_sets and not mrunner,
        array=request.array,
        logs=command.logs_of(what.sbatch),
        mrunner=mrunner,
        sources=[] if declared is None else choose.sources(declared, project),
        parallel=request.parallel,
        calls=bool(request.calls),
        calls_per_process=request.calls_per_process,
        holder=Holder(clocks().first_session, clocks().next_session) if request.session else None,
    )
    encoded = b"" if declared is None else msgspec.json.encode(declared)
    draft = Draft(
        made,
        msgspec.structs.replace(wanted, variables={}),
        needs,
        encoded,
        request.calls_python,
        staging.requested(request.stage) if holders.purpose(request) == "run" else StageRequest(),
    )
    if unreachable is not None:
        settle.with_signal(
            made.run.restart_policy, time_limit.seconds(wanted.type, needs.resources.minutes, wanted.time)
        )
        planned = Planned(made, needs.warnings, Unsettled(msgspec.json.encode(draft), unreachable))
    else:
        planned = settle.settle(draft, facts, index, watch)
    if request.dev is not None or request.service is not None:
        planned = holders.on_the_node(request, planned)
    variables = variables_of(planned.plan)
    arguments.check_size(given.words, variables)
    arguments.check_sets(made.sets, given.words, variables, passed=made.arguments)
    warnings = [
        *planned.warnings,
        *([] if kind.scheduler else _without_scheduler(request)),
        *_not_passed(made),
        *about_env,
        *about_script,
        *about_code,
    ]
    return msgspec.structs.replace(planned, warnings=warnings)


def check(context: Context, request: Request) -> None:
    """Raise the errors of `plan` that are known before the first submission.

    UserError: a setting is invalid. RefusedError: the site cannot provide the resources, by its recorded facts. The
    site is queried only to confirm that; if it is unreachable, or was never probed, `plan` decides.
    """
    project = Project()
    settings = precedence.resolve(context, request.flags, request.entry)
    wanted = precedence.as_context(context.name, settings)
    kind = kind_of(wanted.type)
    _check_output_size(wanted, request)
    _check_text(settings, project, in_place=not request.snapshot and kind.here)
    needs = scheduling.needs_of(wanted, request, settings, None)
    _secrets(wanted, request, needs, kind)
    settle.with_signal(request.restart_policy, time_limit.seconds(wanted.type, needs.resources.minutes, wanted.time))
    _declared(wanted, request, command.read(request.words or holders.words(request), project), project)
    facts = recorded_facts.load(wanted) if kind.probed else None
    if kind.here or facts is not None:
        with suppress(UnreachableError):
            checks.check(wanted, needs.checked, facts, label=project.label, watch=unwatched)


def _declared(
    wanted: Context, request: Request, what: command.Command, project: Project
) -> tuple[Declared | None, list[str]]:
    """Return what declares the environment that yurt builds, and what to tell the user about it."""
    argv = ["python"] if request.calls or holders.words(request) else what.argv
    own_setup = what.sbatch is not None or bool(request.calls and not request.calls_python)
    return choose.chosen(wanted, argv, project, own_setup=own_setup, flag=_env_flag(request))


def _asks_as_mrunner(wanted: Context, request: Request) -> bool:
    """Return whether the script of a spec file loads its parameters from a file, as under mrunner."""
    if not request.spec:
        return False
    from yurt.lifecycle.plan import mrunner_script

    keys = {key for each in request.sets for key in each}
    path = wanted.variables.get("PYTHONPATH", "")
    return mrunner_script.asks(request.words, keys, helpers=request.spec == "mrunner", python_path=path)


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


def _run(
    project: Project,
    wanted: Context,
    request: Request,
    settings: Mapping[str, Setting],
    *,
    needs: Needs,
    given: Given,
    code: Code,
    secrets: list[str],
) -> Run:
    created = time.time()
    run_id = (ids.make_sweep if request.sets else ids.make)(created, int.from_bytes(os.urandom(4)))
    return Run(
        id=run_id,
        context=wanted.name,
        context_type=wanted.type,
        project=project.label,
        source=params.shown(str(project.folder)),
        created=created,
        command=[params.shown(word) for word in _as_shown(request, given.extra)],
        folder="",
        purpose=holders.purpose(request),
        name=params.shown(request.name),
        params=arguments.jsonable(given.typed),
        tags=[params.shown(tag) for tag in dict.fromkeys([*wanted.tags, *request.tags])],
        note=params.shown(request.note),
        subfolder=project.subfolder if request.snapshot else "",
        resources=needs.resources,
        code=code,
        restart_policy=request.restart_policy,
        tasks=len(request.sets),
        after=list(request.after),
        secrets=secrets,
        home_sync=needs.home_sync,
        settings=_chosen(settings),
        user=wanted.user_id or person(),
        host=os.uname().nodename,
        yurt_version=__version__,
    )


def _check_parallel(request: Request) -> None:
    if request.parallel is not None and not request.sets:
        raise UserError(
            "--max-parallel needs a sweep (--grid, --zip, --config, --spec or a script with `#SBATCH --array`)",
            code="usage",
            hint="for example: `--grid lr=0.1,0.01`",
        )


def _check_output_size(wanted: Context, request: Request) -> None:
    text = request.flags.get("output_size")  # an empty one is not in the settings
    text = wanted.output_size if text is None else text
    if text is None:
        return
    from yurt.model.quotas import read_amount

    if read_amount(text) is None:
        raise UserError(
            f"output_size: '{text}' is neither a size nor a number of files",
            code="usage",
            hint="for example: `20G`, `1000 files` or `20G 1000 files`",
        )


def _secrets(wanted: Context, request: Request, needs: Needs, kind: Kind) -> list[str]:
    """Return the names of the secrets, each once. UserError if one cannot be passed to the run."""
    names = list(dict.fromkeys(request.secrets))
    if names:
        checks.check_secrets(names, wanted.variables, needs.all_options if kind.scheduler else {})
    return names


def _code(
    project: Project, wanted: Context, request: Request, by_project: bool, watch: Watch
) -> tuple[Code, list[str]]:
    if not request.snapshot:
        return Code(), []
    return snapshot_of(
        project,
        wanted,
        include=request.include,
        exclude=request.exclude,
        largest_file=request.largest_file,
        named=[] if request.calls else [*request.words, *request.arguments],
        by_project=by_project,
        watch=watch,
    )


def _env_flag(request: Request) -> str:
    """Return the option of the request that names the declaration of its environment; empty if there is none."""
    if request.flags.get("requirements_file"):
        return "--requirements"
    return "--env" if request.flags.get("env") not in (None, choose.NONE) else ""


def _as_shown(request: Request, extra: Sequence[str]) -> Sequence[str]:
    """Return the command as users see it."""
    if holding := holders.shown(request):
        return holding
    return [request.calls] if request.calls else [*request.words, *request.arguments, *extra]


def _without_scheduler(request: Request) -> list[str]:
    """Return one warning about options that need a scheduler."""
    given = [row.key for row in TABLE if row.scheduler and row.key and request.flags.get(row.key)]
    given += ["hold"] if request.hold else []
    return [f"{', '.join(given)} ignored: this machine has no scheduler"] if given else []


def _check_text(settings: Mapping[str, Setting], project: Project, *, in_place: bool) -> None:
    """Raise UserError if a text for the job script is not UTF-8. Variables and arguments may be any bytes."""
    texts = {key: each.value for key, each in settings.items() if key != "variables"}
    texts["the working directory"] = str(project.folder / project.subfolder) if in_place else project.subfolder
    for what, text in texts.items():
        try:
            msgspec.json.encode(text)
        except UnicodeEncodeError:
            raise UserError(f"{what} is not valid UTF-8: {arguments.jsonable(text)}", code="usage") from None


def _chosen(settings: Mapping[str, Setting]) -> list[Chosen]:
    given = (each for each in settings.values() if each.source != "default" and each.key not in ("type", "lab"))
    return [Chosen(each.key, arguments.jsonable(each.value), each.source) for each in given]
