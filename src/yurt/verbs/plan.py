"""From what a user asks for to a plan: a value that can be printed, kept, and submitted any number of times.

Nothing is sent here, and of this machine only the store of snapshots is written.
"""

from __future__ import annotations

import glob
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from yurt import __version__
from yurt.backends.job import script
from yurt.config import precedence
from yurt.config.precedence import Setting
from yurt.errors import RefusedError, UserError
from yurt.model import ids, layout, params
from yurt.model.context import Context
from yurt.model.facts import Facts
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.resources import parse_gpus, parse_memory, parse_time
from yurt.model.run import Asked, Chosen, Code, Plan, Run
from yurt.verbs import command, provenance, site
from yurt.verbs.places import Project, expand, project_folder

FRESH = 600.0
"""Facts older than this are asked for again before anything is refused because of them."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A run as a user asks for it."""

    words: Sequence[str]
    """The script or command."""
    arguments: Sequence[str] = ()
    """What stands after `--`."""
    params: Mapping[str, Any] = {}
    """Further parameters; a text reaches the script as it is, and is read as the number or list it stands for."""
    flags: Mapping[str, Any] = {}
    """Settings given as options, by the keys of a context."""
    name: str = ""
    tags: Sequence[str] = ()
    note: str = ""
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    snapshot: bool = True
    copy: bool = False
    restarts: int = 0
    hold: bool = False
    largest_file: int | None = None
    lease: int = script.LEASE


class Planned(msgspec.Struct, frozen=True):
    """A plan, and what the user should know of it."""

    plan: Plan
    warnings: list[str]


def plan(context: Context, request: Request, *, watch: Watch = unwatched) -> Planned:
    """Plan a run. UserError and RefusedError say what cannot work, with the nearest that can."""
    created = time.time()
    warnings: list[str] = []
    project = Project()
    settings = precedence.resolve(context, request.flags)
    _check_text(settings, project, in_place=not request.snapshot and context.type == "local")
    wanted = precedence.as_context(context.name, settings)
    facts = site.facts_of(wanted, watch=watch) if wanted.type == "slurm" else None
    what = command.read(request.words, project)
    more = dict(wanted.sbatch_options)
    if request.hold:
        more["hold"] = None
    asked = _asked(wanted)
    if what.sbatch is not None:
        asked, more = command.yield_to_script(asked, more, what.sbatch, _given(settings, request))
        warnings += command.left_aside(what.sbatch)
    _check_options(more)
    facts = _checked(wanted, asked, facts, label=project.label, watch=watch)
    run_id = ids.make(created, int.from_bytes(os.urandom(4)))
    folder = project_folder(wanted, facts, project.label)
    extra = params.words(_named(request.params))
    given = {**params.read(request.arguments), **request.params}
    values = {key: params.typed(each) if isinstance(each, str) else each for key, each in given.items()}
    words = [*what.argv, *request.arguments, *extra]
    code = _snapshot(project, request, wanted, watch) if request.snapshot else Code()
    in_place = not request.snapshot and wanted.type == "local"
    run = Run(
        id=run_id,
        context=wanted.name,
        kind=wanted.type,
        project=project.label,
        source=params.shown(str(project.folder)),
        created=created,
        command=[params.shown(word) for word in (*request.words, *request.arguments, *extra)],
        folder=layout.run(folder, run_id),
        name=params.shown(request.name),
        params=_jsonable(values),
        tags=[params.shown(tag) for tag in dict.fromkeys([*wanted.tags, *request.tags])],
        note=params.shown(request.note),
        subfolder=project.subfolder if request.snapshot else "",
        asked=asked,
        code=code,
        restarts=request.restarts,
        settings=_chosen(settings),
        who=wanted.user_id or _person(),
        host=os.uname().nodename,
        yurt=__version__,
    )
    variables = _variables(run, wanted, facts, given)
    place = str(project.folder / project.subfolder) if in_place else ""
    made = _parts(run, wanted, request, more=more, facts=facts, what=what, place=place)
    data = script.data([os.fsencode(word) for word in words], variables)
    _check_size(words, variables)
    if wanted.env or wanted.requirements_file:
        warnings.append("yurt builds no environments yet: env and requirements_file are left aside; use venv or conda")
    return Planned(
        Plan(
            run=run,
            script=made[0],
            data=data,
            params=msgspec.json.encode(_jsonable(values)) + b"\n",
            options=made[1],
            project_folder=folder,
            store=str(project.code),
            copy=request.copy,
        ),
        warnings,
    )


def _person() -> str:
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
            raise UserError(f"{what} is no UTF-8 text: {_jsonable(text)}", code="usage") from None


def _asked(context: Context) -> Asked:
    resources = context.resources
    gpu_type, gpus = parse_gpus(resources.gpu) if resources.gpu is not None else (None, None)
    return Asked(
        cpus=resources.cpu,
        gpus=gpus,
        gpu_type=gpu_type,
        memory_mb=None if resources.mem is None else parse_memory(resources.mem),
        minutes=None if context.time is None else parse_time(context.time),
        ntasks=context.ntasks,
        partition=context.partition,
        account=context.account,
        qos=context.qos,
        nodelist=context.nodelist,
        exclude_nodes=context.exclude_nodes,
    )


def _given(settings: Mapping[str, Setting], request: Request) -> Callable[[str], bool]:
    """Whether a setting, or a part of one such as resources.cpu, was given as a flag or a variable."""

    def given(key: str) -> bool:
        name, _, part = key.partition(".")
        flag = request.flags.get(name)
        if part:
            flag = (flag or {}).get(part)
        return bool(flag) or settings[name].source.startswith("$")

    return given


def _checked(context: Context, asked: Asked, facts: Facts | None, *, label: str, watch: Watch) -> Facts | None:
    """Facts under which the run can work. What they forbid is asked of the site once more before it is said."""
    if facts is None:
        from yurt.backends.local import check as local

        _refuse(context, local.faults(asked))
        return None
    from yurt.backends.slurm import check

    folder = project_folder(context, facts, label)
    if check.faults(asked, facts, folder) and time.time() - facts.probed_at > FRESH:
        facts = site.ask(context, watch=watch)
    _refuse(context, check.faults(asked, facts, folder))
    return facts


def _check_options(more: Mapping[str, str | None]) -> None:
    from yurt.backends.slurm import options

    wrong = options.faults(more)
    if wrong:
        raise UserError("; ".join(wrong), code="usage", hint="yurt run --help")


def _refuse(context: Context, faults: Sequence[str]) -> None:
    if faults:
        raise RefusedError(
            f"{context.name}: {'; '.join(faults)}", code="impossible", hint=f"yurt context probe {context.name}"
        )


def _named(values: Mapping[str, Any]) -> Mapping[str, Any]:
    for key in values:
        try:
            params.check_key(key)
        except ValueError as error:
            raise UserError(str(error), code="usage", hint="for example --param lr=0.1") from None
    return values


def _snapshot(project: Project, request: Request, context: Context, watch: Watch) -> Code:
    from yurt import snapshot

    watch(Event("taking a snapshot of the code"))
    asked = provenance.Commit(project.folder)
    limits = {} if request.largest_file is None else {"largest_file": request.largest_file}
    inside, outside = _further(context.paths_to_copy, project)
    taken = snapshot.take(
        project.folder,
        project.code,
        include=[*request.include, *inside],
        exclude=[*context.exclude, *request.exclude],
        also=outside,
        **limits,
    )
    commit, tree, branch = asked.answer()
    return Code(
        tree=taken.tree,
        files=taken.files,
        size=taken.size,
        commit=commit,
        changed=bool(commit) and tree != taken.tree,
        branch=branch,
    )


def _further(paths: Sequence[str], project: Project) -> tuple[list[str], list[Path]]:
    """paths_to_copy as globs below the project, and as paths outside of it. They are from the project's folder on."""
    inside: list[str] = []
    outside: list[Path] = []
    folder = os.path.realpath(project.folder)
    for text in paths:
        path = os.path.realpath(os.path.join(folder, os.path.expandvars(os.path.expanduser(text))))
        if path.startswith(folder + "/"):
            name = glob.escape(os.path.relpath(path, folder))
            inside.append(f"{name}/**" if os.path.isdir(path) else name)
        else:
            outside.append(Path(path))
    return inside, outside


def _variables(run: Run, context: Context, facts: Facts | None, values: Mapping[str, Any]) -> dict[str, bytes]:
    try:
        own = params.variables(values)
    except ValueError as error:
        raise UserError(str(error), code="usage", hint="rename one of them") from None
    scratch = ""
    if context.scratch_dir:
        below = context.scratch_dir if context.scratch_dir[0] in "/~$" else f"$SCRATCH/{context.scratch_dir}"
        scratch = expand(context, facts, below, "scratch_dir")
    fixed = {
        "YURT_RUN_ID": run.id,
        "YURT_RUN_DIR": run.folder,
        "YURT_CONTEXT": run.context,
        "YURT_OUTPUTS": f"{run.folder}/outputs",
        "YURT_CHECKPOINTS": f"{run.folder}/checkpoints",
        "YURT_PARAMS": f"{run.folder}/params.json",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
    }
    if scratch:
        fixed["YURT_SCRATCH"] = scratch
    for name in context.variables:
        if not name.isidentifier() or not name.isascii() or name in script.SHELLS_OWN:
            why = "belongs to the shell" if name in script.SHELLS_OWN else "is no name for a variable"
            raise UserError(f"'{params.shown(name)}' {why}", code="usage", hint="for example --var SEED=1")
    return {name: os.fsencode(value) for name, value in {**fixed, **own, **context.variables}.items()}


def _parts(
    run: Run,
    context: Context,
    request: Request,
    *,
    more: Mapping[str, str | None],
    facts: Facts | None,
    what: command.Command,
    place: str,
) -> tuple[str, list[str]]:
    """The script and the options of the job."""
    asked = run.asked
    setup = script.Setup(
        modules=context.modules_to_load,
        modules_init=facts.modules_init if facts is not None else "",
        after_modules=context.after_module_load_cmd or "",
        venv=expand(context, facts, context.venv, "venv") if context.venv else "",
        conda=context.conda or "",
        container=_image(context, facts),
    )
    minutes = asked.minutes
    if facts is None:
        options, submitted_as = [str(asked.cpus or 1), str(asked.gpus or 0)], "sh job.sh NONCE"
        tasks, lines = False, []
    else:
        from yurt.backends.slurm import options as slurm

        options = slurm.arguments(run.id, asked, more, restarts=run.restarts, folder=run.folder)
        # A script with #SBATCH lines starts its tasks itself.
        submitted_as, tasks = slurm.as_typed(options), what.sbatch is None and slurm.several_tasks(asked, more)
        lines = what.sbatch.lines if what.sbatch is not None else []
        partition = facts.partition(asked.partition or facts.default_partition)
        minutes = minutes or _own_minutes(what, more)
        if minutes is None and partition is not None:
            minutes = partition.default_minutes or partition.max_minutes
    made = script.job(
        run,
        setup,
        submitted_as=submitted_as,
        code=f"{run.folder.rpartition('/runs/')[0]}/snapshots/{run.code.tree}" if run.code.tree else "",
        place=place,
        copy=request.copy,
        tasks=tasks,
        limit=None if minutes is None else minutes * 60,
        lease=request.lease,
        shebang_lines=lines,
    )
    return made, options


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
    return [Chosen(each.key, _jsonable(each.value), each.source) for each in given]


def _check_size(words: Sequence[str], variables: Mapping[str, bytes]) -> None:
    for word in words:
        if len(os.fsencode(word)) > params.ARGUMENT_LIMIT:
            raise UserError(
                f"one argument has {len(os.fsencode(word))} bytes, and Linux passes at most {params.ARGUMENT_LIMIT}",
                code="usage",
                hint="put it into a file of the project and pass the file's name",
            )
        if "\0" in word:
            raise UserError("an argument holds a NUL byte, which no program can be given", code="usage")
    for name, value in variables.items():
        if len(value) + len(name) + 1 > params.ARGUMENT_LIMIT or b"\0" in value:
            raise UserError(
                f"the variable {name} has {len(value)} bytes or a NUL among them; Linux passes at most "
                f"{params.ARGUMENT_LIMIT} bytes and no NUL",
                code="usage",
                hint="put it into a file of the project",
            )
    total = sum(len(os.fsencode(word)) + 9 for word in words) + sum(len(each) + 40 for each in variables.values())
    if total > params.TOTAL_LIMIT:
        raise UserError(
            f"arguments and variables have {total} bytes together, and Linux passes about {params.TOTAL_LIMIT}",
            code="usage",
            hint="put them into a file of the project",
        )


def _jsonable(value: Any) -> Any:
    if isinstance(value, str):
        return params.shown(value)
    if isinstance(value, Mapping):
        return {params.shown(key): _jsonable(each) for key, each in value.items()}
    return [_jsonable(each) for each in value] if isinstance(value, list | tuple) else value
