"""From what a user asks for to a plan: a value that can be printed, kept, and submitted any number of times.

Nothing is sent here, and of this machine only the store of snapshots is written.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from yurt import __version__
from yurt.backends.job.script import variables_of
from yurt.backends.kinds import kind_of
from yurt.clocks import clocks
from yurt.config import precedence
from yurt.config.precedence import Setting
from yurt.errors import UserError
from yurt.lifecycle.plan import arguments, checks, command
from yurt.lifecycle.plan.code import snapshot_of
from yurt.lifecycle.refresh import bad_nodes
from yurt.model import ids, layout, params
from yurt.model.context import Context
from yurt.model.facts import Facts
from yurt.model.progress import Watch, unwatched
from yurt.model.resources import parse_time
from yurt.model.run import After, Chosen, Code, Plan, Resources, RestartPolicy, Run, Setup
from yurt.model.settings import TABLE
from yurt.sites.facts import facts_if_probed
from yurt.sites.folders import expand, project_folder
from yurt.sites.project import Project
from yurt.store import Store


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A run as a user asks for it."""

    words: Sequence[str]
    """The script or command."""
    arguments: Sequence[str] = ()
    """What stands after `--`."""
    params: Mapping[str, Any] = {}
    """Further parameters; a text reaches the script as it is, and is read as the number or list it stands for."""
    typed: bool = False
    """Whether those have their types already, so that a text is a text."""
    flags: Mapping[str, Any] = {}
    """Settings given as options, by the keys of a context."""
    name: str = ""
    tags: Sequence[str] = ()
    note: str = ""
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    snapshot: bool = True
    copy: bool = False
    restart_policy: RestartPolicy = RestartPolicy()
    after: Sequence[After] = ()
    sets: Sequence[Mapping[str, Any]] = ()
    """Of a sweep: the parameters of each task, typed."""
    pass_sets: bool = True
    """Whether they are arguments of the command, too."""
    parallel: int | None = None
    """How many of them may run at a time."""
    hold: bool = False
    largest_file: int | None = None
    secrets: Sequence[str] = ()
    """Names of variables whose values are read from the environment or the keyring when the run is sent."""
    calls: str = ""
    """The function whose calls its tasks are, as people are shown it."""


class Planned(msgspec.Struct, frozen=True):
    """A plan, and what the user should know of it."""

    plan: Plan
    warnings: list[str]


def plan(
    context: Context,
    request: Request,
    *,
    project: Project | None = None,
    index: Store | None = None,
    watch: Watch = unwatched,
) -> Planned:
    """Plan a run. UserError and RefusedError say what cannot work, with the nearest that can.

    Without a `project` it is the one around the working folder. With an `index`, what happened to earlier runs counts.
    """
    created = time.time()
    warnings: list[str] = []
    project = project or Project()
    settings = precedence.resolve(context, request.flags)
    _check_text(settings, project, in_place=not request.snapshot and kind_of(context.type).here)
    wanted = precedence.as_context(context.name, settings)
    kind, facts = kind_of(wanted.type), facts_if_probed(wanted, watch=watch)
    what = command.read(request.words, project)
    more = dict(wanted.sbatch_options)
    if request.hold:
        more["hold"] = None
    resources = checks.resources_of(wanted)
    if what.sbatch is not None:
        resources, more = command.yield_to_script(resources, more, what.sbatch, _given(settings, request))
        warnings += command.left_aside(what.sbatch)
    checks.check_options(more)
    names = list(dict.fromkeys(request.secrets))
    if names:
        own = what.sbatch.options if what.sbatch is not None else {}
        checks.check_secrets(names, wanted.variables, {**own, **more} if facts is not None else {})
    facts = checks.check(wanted, resources, facts, label=project.label, watch=watch)
    failed: list[str] = []
    if index is not None:
        resources, failed = bad_nodes.avoiding(index, wanted.name, resources, facts)
    run_id = (ids.make_sweep if request.sets else ids.make)(created, int.from_bytes(os.urandom(4)))
    folder = project_folder(wanted, facts, project.label)
    given_words = [*what.argv, *request.arguments]
    named = params.slots(given_words)
    extra = params.words(arguments.named({key: each for key, each in request.params.items() if key not in named}))
    given = {**params.read(request.arguments), **request.params}
    known = request.params if request.typed else {}
    typed = {
        key: params.typed(each) if isinstance(each, str) and key not in known else each for key, each in given.items()
    }
    words = [*(params.filled(word, request.params) for word in given_words), *extra]
    arguments.check_slots(named, request.sets)
    code = Code()
    if request.snapshot:
        code = snapshot_of(
            project,
            wanted,
            include=request.include,
            exclude=request.exclude,
            largest_file=request.largest_file,
            watch=watch,
        )
    minutes = _minutes(resources, what, more, facts)
    run = Run(
        id=run_id,
        context=wanted.name,
        context_type=wanted.type,
        project=project.label,
        source=params.shown(str(project.folder)),
        created=created,
        command=[params.shown(word) for word in _as_shown(request, extra)],
        folder=(layout.sweep if request.sets else layout.run)(folder, run_id),
        name=params.shown(request.name),
        params=arguments.jsonable(typed),
        tags=[params.shown(tag) for tag in dict.fromkeys([*wanted.tags, *request.tags])],
        note=params.shown(request.note),
        subfolder=project.subfolder if request.snapshot else "",
        resources=resources,
        code=code,
        restart_policy=_with_signal(request.restart_policy, minutes),
        tasks=len(request.sets),
        after=list(request.after),
        secrets=names,
        settings=[*_chosen(settings), *(Chosen("exclude_nodes", node, "runs failed there lately") for node in failed)],
        user=wanted.user_id or person(),
        host=os.uname().nodename,
        yurt_version=__version__,
    )
    made = Plan(
        run=run,
        project_folder=folder,
        store=str(project.code),
        words=[os.fsencode(word) for word in words],
        variables=arguments.variables(wanted, facts, given),
        setup=_setup(wanted, facts),
        native_options=more,
        native_lines=list(what.sbatch.lines) if what.sbatch is not None else [],
        use_srun=_use_srun(resources, what, more, facts),
        limit=None if minutes is None else minutes * 60,
        lease=clocks().lease,
        grace=clocks().grace,
        place=str(project.folder / project.subfolder) if not request.snapshot and kind.here else "",
        copy=request.copy,
        sets=[arguments.jsonable(each) for each in request.sets],
        arguments=request.pass_sets,
        parallel=request.parallel,
        follow=facts is not None and not facts.requeue,
        calls=bool(request.calls),
    )
    arguments.check_size(words, variables_of(made))
    arguments.check_sets(made.sets, words, variables_of(made), passed=made.arguments)
    if not kind.scheduler:
        warnings += _meaningless(request)
    if wanted.env or wanted.requirements_file:
        warnings.append("yurt builds no environments yet: env and requirements_file are left aside; use venv or conda")
    return Planned(made, warnings)


def _as_shown(request: Request, extra: Sequence[str]) -> Sequence[str]:
    """The command as people see it."""
    return [request.calls] if request.calls else [*request.words, *request.arguments, *extra]


def _with_signal(wanted: RestartPolicy, minutes: int | None) -> RestartPolicy:
    """With the time it has for saving, which is told before the limit."""
    if not wanted.max_requeues or minutes is None:
        return wanted
    if wanted.signal_before >= minutes * 60:
        raise UserError(
            f"--signal-before is {wanted.signal_before} s, and the time limit {minutes * 60} s",
            code="usage",
            hint=f"--signal-before {min(120, minutes * 15)}s",
        )
    return msgspec.structs.replace(wanted, signal_before=wanted.signal_before or min(120, minutes * 15))


def _meaningless(request: Request) -> list[str]:
    """Flags that say nothing on this machine, as one warning."""
    given = [row.key for row in TABLE if row.scheduler and row.key and request.flags.get(row.key)]
    given += ["hold"] if request.hold else []
    return [f"this machine has no scheduler: {', '.join(given)} mean nothing here"] if given else []


def person() -> str:
    """Who calls yurt."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return os.environ.get("USER", str(os.getuid()))


def _check_text(settings: Mapping[str, Setting], project: Project, *, in_place: bool) -> None:
    """UserError where something that stands in a script is no text; variables and arguments may be any bytes."""
    texts = {key: each.value for key, each in settings.items() if key != "variables"}
    texts["the folder you are in"] = str(project.folder / project.subfolder) if in_place else project.subfolder
    for what, text in texts.items():
        try:
            msgspec.json.encode(text)
        except UnicodeEncodeError:
            raise UserError(f"{what} is no UTF-8 text: {arguments.jsonable(text)}", code="usage") from None


def _given(settings: Mapping[str, Setting], request: Request) -> Callable[[str], bool]:
    """Whether a setting, or a part of one such as resources.cpu, was given as a flag or a variable."""

    def given(key: str) -> bool:
        name, _, part = key.partition(".")
        flag = request.flags.get(name)
        if part:
            flag = (flag or {}).get(part)
        return bool(flag) or settings[name].source.startswith("$")

    return given


def _setup(context: Context, facts: Facts | None) -> Setup:
    return Setup(
        modules=list(context.modules_to_load),
        modules_init=facts.modules_init if facts is not None else "",
        after_modules=context.after_module_load_cmd or "",
        venv=expand(context, facts, context.venv, "venv") if context.venv else "",
        conda=context.conda or "",
        container=_image(context, facts),
    )


def _use_srun(resources: Resources, what: command.Command, more: Mapping[str, str | None], facts: Facts | None) -> bool:
    """Whether srun starts the command. A script with #SBATCH lines starts its tasks itself."""
    from yurt.backends.slurm.options import several_tasks

    return facts is not None and what.sbatch is None and several_tasks(resources, more)


def _minutes(
    resources: Resources, what: command.Command, more: Mapping[str, str | None], facts: Facts | None
) -> int | None:
    """The time limit, wherever it is said; None if nobody says it."""
    if facts is None:
        return resources.minutes
    partition = facts.partition(resources.partition or facts.default_partition)
    usual = None if partition is None else partition.default_minutes or partition.max_minutes
    return resources.minutes or _own_minutes(what, more) or usual


def _own_minutes(what: command.Command, more: Mapping[str, str | None]) -> int | None:
    """The time limit among options of sbatch and #SBATCH lines; None if there is none yurt understands."""
    from yurt.backends.slurm import options

    own = dict(what.sbatch.options) if what.sbatch is not None else {}
    own |= {options.long_name(name): value for name, value in more.items()}
    try:
        return parse_time(own.get("time") or "")
    except ValueError:
        return None


def _image(context: Context, facts: Facts | None) -> str:
    image = context.container or ""
    return expand(context, facts, image, "container") if image[:1] in ("~", "$") else image


def _chosen(settings: Mapping[str, Setting]) -> list[Chosen]:
    given = (each for each in settings.values() if each.source != "default" and each.key not in ("type", "lab"))
    return [Chosen(each.key, arguments.jsonable(each.value), each.source) for each in given]
