"""What a user means to run: a Python file, a script with #SBATCH lines, any command."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from yurt.backends.slurm import options
from yurt.backends.slurm.options import Script
from yurt.errors import UserError
from yurt.model.run import Resources
from yurt.model.settings import TABLE
from yurt.sites.project import Project

HEAD = 1 << 16

RIVALS = {"mem": ("mem", "mem-per-cpu", "mem-per-gpu"), "gres": ("gres", "gpus", "gpus-per-node", "gpus-per-task")}
"""Options that say the same in other words."""


class Command(msgspec.Struct, frozen=True):
    """The program and its first arguments, and the #SBATCH lines of the script, if it has any."""

    argv: list[str]
    sbatch: Script | None = None


def read(words: Sequence[str], project: Project) -> Command:
    """What to execute for the words a user typed. UserError for a script that is not there."""
    if not words or not words[0]:
        raise UserError("there is nothing to run", code="usage", hint="yurt run train.py -- --lr 0.1")
    first, rest = _below(words[0], project), list(words[1:])
    path = Path(first)
    if not path.is_file():
        if path.suffix in (".py", ".sh", ".sbatch", ".slurm") and not path.is_absolute():
            from difflib import get_close_matches

            near = get_close_matches(first, os.listdir("."), n=1)
            raise UserError(
                f"there is no file '{first}' here" + (f"; did you mean '{near[0]}'?" if near else ""), code="usage"
            )
        return Command([first, *rest])
    with path.open("rb") as file:
        head = file.read(HEAD).decode(errors="replace")
    script = options.read_script(head)
    return Command([*_starter(first, script), *rest], _own_lines(first, script))


def _starter(first: str, script: Script) -> list[str]:
    """The file, and before it what starts it."""
    if first.endswith(".py"):
        return ["python", first]
    if script.lines:
        return [*(script.interpreter or ["sh"]), first]
    if os.access(first, os.X_OK):
        return [first if "/" in first else f"./{first}"]
    return [*(script.interpreter or ["sh"] * first.endswith(".sh")), first]


def _own_lines(first: str, script: Script) -> Script | None:
    """The script's #SBATCH lines, if it has any. UserError for those that make something else of it than a run."""
    for name in script.options:
        if name in options.FOREIGN:
            raise UserError(
                f"'{first}' has #SBATCH --{name}, which would make something else of it than one run",
                code="usage",
                hint="take that line out",
            )
    return script if script.lines else None


def _below(word: str, project: Project) -> str:
    """An absolute path of a file in the project, from where the user stands: the project itself travels."""
    if not os.path.isabs(word) or not os.path.isfile(word):
        return word
    folder = os.path.realpath(project.folder)
    real = os.path.realpath(word)
    return os.path.relpath(real, os.path.realpath(".")) if real.startswith(folder + "/") else word


def yield_to_script(
    resources: Resources, more: Mapping[str, str | None], script: Script, given: Callable[[str], bool]
) -> tuple[Resources, dict[str, str | None]]:
    """Leave out what the script's own lines say, unless `given` tells that a setting was a flag or a variable."""
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


def left_aside(script: Script) -> list[str]:
    """What of a script's own lines yurt overrides, a sentence each."""
    return [
        f"#SBATCH --{name} of the script is left aside: yurt sets it, to find the run again"
        for name in script.options
        if name in options.OWN
    ]
