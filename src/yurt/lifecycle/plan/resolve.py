"""Resolves and validates a request: its settings, its command, what it requests from a scheduler, and its secrets.

This happens once, before the site is queried. The steps of `plan` use the result and do not validate it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from yurt.backends.kinds import Kind, kind_of
from yurt.config import precedence
from yurt.config.precedence import Setting
from yurt.contexts.project import Project
from yurt.envs.of_runs import choose
from yurt.errors import UserError
from yurt.lifecycle.plan import command, holders, scheduling
from yurt.lifecycle.plan.arguments import jsonable
from yurt.lifecycle.plan.command import Command
from yurt.lifecycle.plan.holders import Program
from yurt.lifecycle.plan.request import Request
from yurt.lifecycle.plan.scheduling import Needs
from yurt.model.context import Context

if TYPE_CHECKING:
    from yurt.envs.declared import Declared


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """A valid request on a context, as far as that can be known without its site."""

    request: Request
    """With the name and the array of the script."""
    project: Project
    settings: Mapping[str, Setting]
    context: Context
    """With all settings of the request."""
    kind: Kind
    program: Program | None
    """If the job runs a program of yurt."""
    command: Command
    in_place: bool
    """Whether it runs in the project itself instead of in a copy."""
    needs: Needs
    secrets: list[str]
    """Their names, each once."""
    about_script: list[str]
    """Warnings about the script, if it is outside the project."""


def resolve(context: Context, request: Request, project: Project) -> Resolved:
    """Resolve every setting of a request. UserError if the request is invalid."""
    settings = precedence.resolve(context, request.flags, request.entry)
    wanted = precedence.as_context(context.name, settings)
    kind = kind_of(wanted.type)
    _check_output_size(request.flags, wanted)
    in_place = not request.snapshot and kind.here and request.dev is None
    _check_text(settings, project, in_place=in_place)
    program = holders.program_of(request)
    words = request.words or (program.words if program is not None else ())
    read = command.read(words, project)
    about_script = command.check_inside(words, project, here=kind.here) if request.snapshot else []
    if read.sbatch is not None:
        request = command.with_script(request, read.sbatch)
    _check_parallel(request)
    needs = scheduling.needs_of(wanted, settings, read.sbatch, flags=request.flags, hold=request.hold)
    secrets = list(dict.fromkeys(request.secrets))
    if secrets:
        check_secrets(secrets, wanted.variables, needs.all_options if kind.scheduler else {})
    return Resolved(
        request=request,
        project=project,
        settings=settings,
        context=wanted,
        kind=kind,
        program=program,
        command=read,
        in_place=in_place,
        needs=needs,
        secrets=secrets,
        about_script=about_script,
    )


def declared(asked: Resolved) -> tuple[Declared | None, list[str]]:
    """Return what declares the environment that yurt builds, and what to tell the user about it."""
    request, flags = asked.request, asked.request.flags
    argv = ["python"] if request.calls or asked.program is not None else asked.command.argv
    own_setup = asked.command.sbatch is not None or bool(request.calls and not request.calls_python)
    by_env = "--env" if flags.get("env") not in (None, choose.NONE) else ""
    flag = "--requirements" if flags.get("requirements_file") else by_env
    return choose.chosen(asked.context, argv, asked.project, own_setup=own_setup, flag=flag)


def _check_output_size(flags: Mapping[str, Any], wanted: Context) -> None:
    text = flags.get("output_size")  # an empty one is not in the settings
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


def _check_text(settings: Mapping[str, Setting], project: Project, *, in_place: bool) -> None:
    """Raise UserError if a text for the job script is not UTF-8. Variables and arguments may be any bytes."""
    texts = {key: each.value for key, each in settings.items() if key != "variables"}
    texts["the working directory"] = str(project.folder / project.subfolder) if in_place else project.subfolder
    for what, text in texts.items():
        try:
            msgspec.json.encode(text)
        except UnicodeEncodeError:
            raise UserError(f"{what} is not valid UTF-8: {jsonable(text)}", code="usage") from None


def _check_parallel(request: Request) -> None:
    if request.parallel is not None and not request.sets:
        raise UserError(
            "--max-parallel needs a sweep (--grid, --zip, --config, --spec or a script with `#SBATCH --array`)",
            code="usage",
            hint="for example: `--grid lr=0.1,0.01`",
        )


def check_secrets(names: Sequence[str], variables: Mapping[str, str], options: Mapping[str, str | None]) -> None:
    """Raise UserError if the secrets of a run cannot be passed to it."""
    from yurt.backends.slurm.options import long_name
    from yurt.config import secrets

    for name in names:
        secrets.check_name(name)
        if name in variables:
            raise UserError(
                f"'{name}' is both a secret and a variable of this run",
                code="usage",
                hint=f"remove `--secret {name}`, or remove {name} from `--var` and from `variables` in the context",
            )
    for option, value in options.items():
        if long_name(option) == "export" and "ALL" not in (value or "").split(","):
            given = value or ""
            raise UserError(
                f"sbatch option export={given} cannot be combined with secrets, because secrets are passed in the "
                "environment",
                code="usage",
                hint="use `--sbatch-option export=ALL`",
            )
    secrets.values_of(names)
