"""Options of sbatch: from a run's settings, and from the user's script. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence

import msgspec

from yurt.model import layout
from yurt.model.resources import leading_number
from yurt.model.run import Plan, Resources
from yurt.model.settings import TABLE

SHORT = {
    "A": "account",
    "a": "array",
    "C": "constraint",
    "c": "cpus-per-task",
    "D": "chdir",
    "d": "dependency",
    "e": "error",
    "G": "gpus",
    "J": "job-name",
    "N": "nodes",
    "n": "ntasks",
    "o": "output",
    "p": "partition",
    "q": "qos",
    "t": "time",
    "w": "nodelist",
    "x": "exclude",
}

OWN = ("chdir", "error", "job-name", "open-mode", "output", "parsable", "requeue", "no-requeue")
"""Options that yurt sets itself, to find the job and its logs."""

ORDER = ("partition", "account", "qos", "time", "cpus-per-task", "mem", "gres")
"""The options that come first on the command line; the others follow in the order of the table."""

SUFFIX = {"MB": "M"}
"""sbatch's suffix of a unit that is not its default."""

HOME_SYNC = "home_sync"
"""The first word of the comment of a job that is held until a home sync; see homesync/gate.sh."""

FOREIGN = ("test-only", "wait", "wrap")
"""Options that yurt does not support: with them a job is not exactly one run."""


class Script(msgspec.Struct, frozen=True):
    """The head of a user's script: its interpreter and its #SBATCH lines."""

    interpreter: list[str]
    lines: list[str]
    options: dict[str, str | None]
    at: dict[str, str] = {}
    """FILE:LINE of each option."""


def read_script(text: str, file: str = "") -> Script:
    """Return the interpreter and the #SBATCH lines of a script, as sbatch would read them."""
    lines = text.split("\n")
    first = lines[0].rstrip("\r")
    interpreter = first[2:].split() if first.startswith("#!") else []
    found: list[str] = []
    options: dict[str, str | None] = {}
    at: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.startswith("#"):
            break  # sbatch stops at the first command
        if line.startswith("#SBATCH"):
            found.append(line.rstrip())
            given = {each.name: each.value for each in _options_of(line[len("#SBATCH") :])}
            options |= given
            at |= dict.fromkeys(given, f"{file}:{number}")
    return Script(interpreter, found, options, at)


class _Given(msgspec.Struct, frozen=True):
    """An option of an #SBATCH line: its long name, its value, and the words that give it."""

    name: str
    value: str | None
    words: list[str]


def _options_of(text: str) -> list[_Given]:

    try:
        words = shlex.split(text, comments=True)
    except ValueError:
        words = text.split()
    found: list[_Given] = []
    for index, word in enumerate(words):
        following = words[index + 1] if index + 1 < len(words) and not words[index + 1].startswith("-") else None
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            found.append(_Given(name, value if equals else following, [word]))
        elif re.match(r"-[A-Za-z]", word):
            found.append(_Given(long_name(word[1]), word[2:] or following, [word]))
        elif found:
            found[-1].words.append(word)
    return found


def without(script: Script, names: Collection[str]) -> Script:
    """Return a script's #SBATCH lines without some options (long names); other options of the same line remain."""
    lines = []
    for line in script.lines:
        given = _options_of(line[len("#SBATCH") :])
        kept = [word for each in given if each.name not in names for word in each.words]
        if all(each.name not in names for each in given):
            lines.append(line)
        elif kept:
            lines.append(" ".join(["#SBATCH", *(shlex.quote(word) for word in kept)]))
    options = {name: value for name, value in script.options.items() if name not in names}
    return msgspec.structs.replace(script, lines=lines, options=options)


def long_name(name: str) -> str:
    """Return the long name of an option, given long or short, with or without dashes."""
    bare = name.lstrip("-")
    return SHORT.get(bare, bare) if len(bare) == 1 else bare


def arguments(plan: Plan) -> list[str]:
    """Return the sbatch arguments for a run, without the script and the script's arguments."""
    run = plan.run
    wanted: dict[str, str | None] = {
        "job-name": layout.job_name(run.id),
        "comment": f"yurt:{run.id}",
        "chdir": run.folder,
        "output": "/dev/null" if run.tasks else layout.OUT_LOG,  # each task writes its own logs
        "error": f"{layout.SLURM_ERRORS}%A_%a" if run.tasks else layout.ERR_LOG,  # why Slurm killed a task
        "open-mode": "append",
    }
    if run.restart_policy.max_requeues:  # some sites also send it before a preemption with grace time
        wanted["signal"] = "B:USR1@1"
    wanted |= of_resources(run.resources)
    wanted |= {long_name(name): value for name, value in plan.native_options.items()}
    if run.home_sync:
        own = (wanted["comment"] or "").removeprefix(HOME_SYNC).strip()
        wanted |= {"hold": None, "comment": f"{HOME_SYNC} {own or f'yurt:{run.id}'}"}
    made = [f"--{name}" if value is None else f"--{name}={value}" for name, value in wanted.items()]
    return [*made, "--requeue" if run.restart_policy.max_requeues and not plan.follow else "--no-requeue"]


def of_resources(resources: Resources) -> dict[str, str]:
    """Return the sbatch options of resources, by long name."""
    found: dict[str, str | None] = dict.fromkeys(ORDER)
    for row in TABLE:
        if not row.resource:
            continue
        value = getattr(resources, row.resource)
        if row.form == "gpus" and value:
            found[row.sbatch] = f"gpu:{resources.gpu_type}:{value}" if resources.gpu_type else f"gpu:{value}"
        elif row.form != "gpus" and value is not None:
            found[row.sbatch] = f"{value}{SUFFIX.get(row.unit, '')}"
    return {name: value for name, value in found.items() if value is not None}


def faults(more: Mapping[str, str | None]) -> list[str]:
    """Return what is wrong with the user's options, one sentence for each problem."""
    found = []
    for name in more:
        real = long_name(name)
        if real in OWN:
            found.append(f"--{real} cannot be used: yurt sets it itself")
        elif real in FOREIGN or real == "array":
            found.append(f"--{real} cannot be used: a run must be exactly one job")
        elif not re.fullmatch(r"[a-z][a-z0-9-]*", real):
            found.append(f"'{name}' is not an sbatch option")
    return found


def waits_for_sync(more: Mapping[str, str | None]) -> bool:
    """Return whether options, as given to plain sbatch, hold the job until a home sync."""
    asked = {long_name(name): value for name, value in more.items()}
    return "hold" in asked and (asked.get("comment") or "").split(" ")[0] == HOME_SYNC


def several_tasks(resources: Resources, more: Mapping[str, str | None]) -> bool:
    """Return whether the command needs srun: more than one task or node."""
    asked = {"nodes": resources.nodes} | {long_name(name): value for name, value in more.items()}
    counts = [leading_number(asked.get(name) or "") or 1 for name in ("nodes", "ntasks", "ntasks-per-node")]
    return max(resources.ntasks or 1, *counts) > 1


def next_start(plan: Plan) -> str:
    """Return the command with which job.sh submits a later start: like the first one, but never held."""
    return " ".join(["sbatch", "--parsable", *(shlex.quote(each) for each in arguments(plan.later()))])


def as_typed(options: Sequence[str]) -> str:
    return " ".join(["sbatch", *(shlex.quote(each) for each in options), layout.JOB, "NONCE"])
