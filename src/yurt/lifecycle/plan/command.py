"""The command of a run: a Python file, a script with #SBATCH lines, or any command."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from yurt.backends.slurm import options
from yurt.backends.slurm.options import Script
from yurt.contexts.project import Project
from yurt.errors import UserError
from yurt.lifecycle.plan.request import Request
from yurt.model.params import ARRAY_INDEX, shown
from yurt.model.run import Resources
from yurt.model.settings import TABLE

HEAD = 1 << 16
SCRIPTS = (".py", ".sh", ".sbatch", ".slurm")

RIVALS = {"mem": ("mem", "mem-per-cpu", "mem-per-gpu"), "gres": ("gres", "gpus", "gpus-per-node", "gpus-per-task")}
"""sbatch options that set the same resource."""


IGNORED = {
    "output": "only a path below the working directory is used; see the output with `yurt logs`",
    "error": "only a path below the working directory is used; see the output with `yurt logs`",
    "chdir": "the script starts in a copy of the project",
    "requeue": "use `yurt run --requeue`",
}
"""Why yurt ignores an #SBATCH option, or what to use instead."""

_ARRAY = r"(?a)\d+(?:-\d+(?::0*[1-9]\d*)?)?(?:,\d+(?:-\d+(?::0*[1-9]\d*)?)?)*(?:%0*[1-9]\d*)?"
_LARGEST = 4_000_001
"""Slurm's limit: indices are smaller."""


class Command(msgspec.Struct, frozen=True):
    """The program and its first arguments, and the #SBATCH lines of the script, if it has any."""

    argv: list[str]
    sbatch: Script | None = None


def read(words: Sequence[str], project: Project) -> Command:
    """Return what to execute for the words a user typed. UserError if the script is not found."""
    if not words or not words[0]:
        raise UserError("no script or command given", code="usage", hint="for example: `yurt run train.py -- --lr 0.1`")
    first, rest = _below(words[0], project), list(words[1:])
    path = Path(first)
    if not path.is_file():
        if path.suffix in SCRIPTS and not path.is_absolute():
            from difflib import get_close_matches

            near = get_close_matches(first, os.listdir("."), n=1)
            raise UserError(
                f"file '{first}' not found" + (f"; did you mean '{near[0]}'?" if near else ""),
                code="usage",
                hint="check the path, which is relative to the working directory",
            )
        return Command([first, *rest])
    with path.open("rb") as file:
        head = file.read(HEAD).decode(errors="replace")
    script = options.read_script(head, first)
    return Command([*_starter(first, script), *rest], _own_lines(script))


def _starter(first: str, script: Script) -> list[str]:
    """Return the file, preceded by its interpreter if it needs one."""
    if first.endswith(".py"):
        return ["python", first]
    if script.lines:
        return [*(script.interpreter or ["sh"]), first]
    if os.access(first, os.X_OK):
        return [first if "/" in first else f"./{first}"]
    return [*(script.interpreter or ["sh"] * first.endswith(".sh")), first]


def _own_lines(script: Script) -> Script | None:
    """Return the script's #SBATCH lines, or None if it has none. UserError for options that yurt does not support."""
    for name in script.options:
        if name in options.FOREIGN:
            raise UserError(
                f"{script.at[name]}: yurt does not support `#SBATCH --{name}`: the job would not be one run",
                code="usage",
                hint=f"remove `--{name}` from that line",
            )
    return script if script.lines else None


def _below(word: str, project: Project) -> str:
    """Make the absolute path of a file in the project relative to the working directory: the job runs in a copy."""
    if not os.path.isabs(word) or not os.path.isfile(word):
        return word
    folder = os.path.realpath(project.folder)
    real = os.path.realpath(word)
    return os.path.relpath(real, os.path.realpath(".")) if real.startswith(folder + "/") else word


def check_inside(words: Sequence[str], project: Project, *, here: bool) -> list[str]:
    """Raise UserError if the script is outside the project, so that the snapshot does not contain it.

    A script with an absolute path may also exist on the site; it is a warning, and on this machine (`here`) nothing.
    """
    at = 1 if len(words) > 1 and os.path.basename(words[0]).startswith("python") else 0
    script = _below(words[at], project)
    if not script.endswith(SCRIPTS) or not Path(script).is_file():
        return []
    name = shown(script)
    if os.path.isabs(script):
        problem = f"'{name}' is outside the project and is not uploaded; the run uses the file of that name on the site"
        return [] if here else [problem]
    if os.path.normpath(os.path.join(project.subfolder, script)).startswith("../"):
        raise UserError(
            f"'{name}' is outside the project '{shown(str(project.folder))}', so the run does not get it",
            code="usage",
            hint="change to the folder of the script, or copy the script into the project",
        )
    return []


def yield_to_script(
    resources: Resources, more: Mapping[str, str | None], script: Script, given: Callable[[str], bool]
) -> tuple[Resources, dict[str, str | None]]:
    """Drop settings that the script's #SBATCH lines set, unless `given` says they came from a flag or a variable."""
    changes: dict[str, None] = {}
    for row in TABLE:
        rivals = RIVALS.get(row.sbatch, (row.sbatch,))
        if row.resource and not given(row.key) and any(name in script.options for name in rivals):
            changes[row.resource] = None
    if "gpus" in changes:
        changes["gpu_type"] = None
    kept = {
        name: value
        for name, value in more.items()
        if given("sbatch_options") or options.long_name(name) not in script.options
    }
    return msgspec.structs.replace(resources, **changes), kept


def yield_to_options(script: Script, resources: Resources, more: Mapping[str, str | None]) -> Script:
    """Drop #SBATCH options for a resource that other options request: sbatch refuses --mem with --mem-per-cpu."""
    used = {options.long_name(name) for name in more}
    used |= {row.sbatch for row in TABLE if row.resource and getattr(resources, row.resource) is not None}
    replaced = {name for rivals in RIVALS.values() if not used.isdisjoint(rivals) for name in rivals}
    return options.without(script, {"array", *replaced})  # yurt submits the tasks of the array itself


def ignored_lines(script: Script) -> list[str]:
    """Return a warning for each #SBATCH line of a script that yurt overrides."""
    return [
        f"{script.at[name]}: `#SBATCH --{name}` is ignored: {IGNORED.get(name, 'yurt sets this option itself')}"
        for name in script.options
        if name in options.OWN and name != "job-name" and name not in logs_of(script)
    ]


def logs_of(script: Script | None) -> dict[str, str]:
    """Return the patterns of --output and --error that name files below the working directory."""
    given = {} if script is None else {name: script.options.get(name) or "" for name in ("output", "error")}
    found = {name: text for name, text in given.items() if text and text[0] != "/" and ".." not in text.split("/")}
    if given.get("error") == given.get("output"):  # both streams in one file, as without --error
        found.pop("error", None)
    return found


def with_script(request: Request, script: Script) -> Request:
    """Return the request with the name and the array of the script. UserError if its array is invalid."""
    name = request.name or script.options.get("job-name") or ""
    request = msgspec.structs.replace(request, name=name)
    if "array" not in script.options:
        return request
    from yurt.model import tasks
    from yurt.model.grid import LIMIT

    at, text = script.at["array"], script.options["array"] or ""
    if request.sets:
        raise UserError(
            f"{at}: `#SBATCH --array` cannot be combined with another sweep",
            code="usage",
            hint="remove that line, or leave out `--grid`, `--zip`, `--config` and `--spec`",
        )
    ranges, _, most = text.partition("%")
    bounds = [int(number) for number in re.findall(r"\d+", ranges)]
    if not re.fullmatch(_ARRAY, text) or max(bounds) >= _LARGEST or not (count := tasks.count(ranges)):
        raise UserError(
            f"{at}: --array must be a list of indices such as 0-9, 1,3,7 or 0-99%10, not '{text}'",
            code="usage",
            hint="correct that line, for example: `#SBATCH --array=0-9`",
        )
    if count > LIMIT:
        raise UserError(
            f"{at}: --array has {count:,} indices; the maximum is {LIMIT:,}",
            code="usage",
            hint="submit several smaller arrays",
        )
    return msgspec.structs.replace(
        request,
        sets=[{ARRAY_INDEX: number} for number in sorted(set(tasks.numbers(ranges)))],
        pass_sets=False,
        array=ranges,
        parallel=request.parallel or (int(most) if most else None),
    )
