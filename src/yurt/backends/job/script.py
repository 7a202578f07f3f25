"""Generates job.sh and its data: the readable script that a run executes on every kind of context. Pure.

One function quotes everything in job.sh; the user's values are in the file `data` next to it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from functools import cache
from shlex import quote

import msgspec

from yurt.backends import scripts
from yurt.backends.job import module, variables
from yurt.model import layout, tasks
from yurt.model import params as values
from yurt.model.race import item_of
from yurt.model.run import Plan, Run, Setup
from yurt.model.stage import windows

SHELLS_OWN = frozenset(
    (
        "BASHOPTS",
        "BASHPID",
        "BASH_ALIASES",
        "BASH_ARGC",
        "BASH_ARGV",
        "BASH_CMDS",
        "BASH_COMMAND",
        "BASH_LINENO",
        "BASH_SOURCE",
        "BASH_SUBSHELL",
        "BASH_VERSINFO",
        "DIRSTACK",
        "EPOCHREALTIME",
        "EPOCHSECONDS",
        "EUID",
        "FUNCNAME",
        "GROUPS",
        "HISTCMD",
        "LINENO",
        "OLDPWD",
        "OPTIND",
        "PPID",
        "PWD",
        "RANDOM",
        "SECONDS",
        "SHELLOPTS",
        "SHLVL",
        "SRANDOM",
        "UID",
        "_",
    )
)
"""Variables that the shell overwrites."""


def job(plan: Plan, *, submitted_as: str, next_start: str = "") -> str:
    """Return the text of job.sh; `next_start` is the command that submits a job for a later start."""
    return head(plan, submitted_as=submitted_as, next_start=next_start) + below_the_head()


def head(plan: Plan, *, submitted_as: str, next_start: str = "") -> str:
    """Return the part of job.sh that differs between runs."""
    run, setup, policy = plan.run, plan.setup, plan.run.restart_policy
    title = shlex.join(run.command)
    code = layout.snapshot(plan.project_folder, run.code.tree) if run.code.tree else ""
    lines = [
        "#!/bin/sh",
        *plan.native_lines,
        f"# yurt run {run.id} on {run.context}: {_one_line(title)}",
        f"# Submitted as: {_one_line(submitted_as)}",
        "# To run it in this terminal, without changing the run's record: sh job.sh",
        "",
        f"kind={quote(run.context_type)}",
        *_place_of(run),
        f"code={quote(code)}",
        f"subfolder={quote(run.subfolder)}",
        f"place={quote(plan.place)}",
        f"copy={'yes' if plan.copy else ''}",
        f"writable={quote(chr(10).join(plan.writable))}",
        f"launcher={'srun' if plan.use_srun else ''}",
        f"sbatch={'yes' if plan.native_lines or plan.array else ''} # whether your script has #SBATCH lines",
        f"profile={setup.profile or ''} # seconds for the profile of your login shell",
        f"container={quote(setup.container)}",
        f"unpack={quote(setup.env if setup.unpack else '')} # environment to unpack onto the disk of each node",
        f"pyxis={quote(setup.pyxis)} # the image for srun, if it starts the container",
        f"first_session={plan.holder.first if plan.holder else ''} # seconds to wait for a session of `yurt shell`",
        f"next_session={plan.holder.again if plan.holder else ''} # seconds to wait after a lost session",
        f"gpus={run.resources.gpus or ''}",
        f"imports={quote(imports(plan))} # for Python: import yurt",
        f"limit={plan.limit or ''} # seconds",
        f"requeues={policy.max_requeues} # maximum restarts at its time limit, or when it asks for one",
        f"before={policy.signal_before} # seconds before the limit at which it is signalled to save",
        f"retries={policy.retries} # maximum restarts after a failure of the site",
        f"errors={'yes' if policy.retry_errors else ''} # whether its own errors are retried too",
        f"follow={'yes' if plan.follow else ''} # whether the next start is a new job",
        f"lease={plan.lease} # seconds",
        f"grace={plan.grace} # seconds between TERM and KILL, without a scheduler",
        f"secrets={quote(' '.join(run.secrets))}",
        f"shares={'stay' if policy else 'go'} # shares of secrets, after the start",
        "",
        *(
            ["submit() { # a later start", f'  {next_start} "$@"', "}", ""]
            if next_start and (policy or plan.race)
            else []
        ),
        "own_folders() { # whether no other user could have written to them",
        f"  own {scripts.own_arguments([*layout.chain(run.folder), *used(plan)])}"
        + "".join(f" &&\n    own {scripts.own_arguments(layout.chain(each))}" for each in elsewhere(plan)),
        "}",
        "",
        *_predecessors(run),
        *_race(plan),
        *_stage(plan.run),
        "own_packages() { # prints where Python finds packages of your project, each with a colon after it",
        f"  {_own_packages(plan)}",
        "}",
        "",
        "environment() { # from your context and your flags",
        *(f"  {line}" for line in _environment(setup)),
        "}",
        "",
        "# From here on the script is the same for every run.",
    ]
    return "\n".join(lines) + "\n"


def imports(plan: Plan) -> str:
    """Return the folder of the modules that the run can import."""
    return layout.module(plan.project_folder, module.name(module.needed(plan.run)))


def used(plan: Plan) -> list[str]:
    """Return the paths that job.sh executes, except the folders of the run."""
    folder, project = plan.run.folder, plan.project_folder
    modules = imports(plan)
    code = [f"{project}/snapshots", layout.snapshot(project, plan.run.code.tree)] if plan.run.code.tree else []
    env = [plan.setup.env.rpartition("/")[0], plan.setup.env] if plan.setup.env and not elsewhere(plan) else []
    return [f"{folder}/{layout.JOB}", f"{folder}/{layout.DATA}", *code, modules.rpartition("/")[0], modules, *env]


def elsewhere(plan: Plan) -> list[str]:
    """Return the folder of the run's environment if it is not in the same folder of yurt as the run."""
    env = plan.setup.env
    return [env] if env and layout.chain(env)[0] != layout.chain(plan.run.folder)[0] else []


def _place_of(run: Run) -> list[str]:
    if not run.tasks:
        return ["sweep=", f"run={quote(run.folder)}"]
    return [
        f"sweep={quote(run.folder)}",
        "case ${1-} in",
        "  inside | heartbeat | sample) ;;",
        '  *) [ -z "${3-}" ] || YURT_TASK_INDEX=$(($3 + ${SLURM_ARRAY_TASK_ID:-0})) ;;',
        "esac",
        f'export YURT_TASK_INDEX="${{YURT_TASK_INDEX:-0}}" # by hand: YURT_TASK_INDEX=3 sh {layout.JOB}',
        f"run=$sweep/{layout.TASKS}/$YURT_TASK_INDEX",
    ]


def _predecessors(run: Run) -> list[str]:
    folders = " ".join(quote(each.folder) for each in run.after if each.folder and not each.ended)
    if not folders:
        return []
    return [
        "predecessors_completed() { # whether the runs before it completed",
        f"  all_completed {folders}",
        "}",
        "",
    ]


def _race(plan: Plan) -> list[str]:
    race, run = plan.race, plan.run
    if race is None:
        return []
    carrier = ["carry() { # lets yurt on this machine carry a claim", f"  {shlex.join(race.carrier)}", "}"]
    reach = [
        "reach() { # reach [OPTION]... COMMAND: asks the arbiter",
        f'  {shlex.join(race.ssh)} "$@"',
        "}",
    ]
    return [
        f"race={quote(race.id)} # of which this run is a candidate",
        f"candidate={quote(run.id)}",
        f"race_folder={quote(race.folder)} # the claims, on {race.arbiter}",
        f"race_here={'yes' if race.here else ''} # whether this job reaches that folder",
        f"race_wait={race.wait} # seconds to wait for an answer",
        f"race_items={max(1, run.tasks)}",
        f"race_first={race.first}",
        f"race_step={race.step}",
        *(carrier if race.carrier else []),
        *(reach if race.ssh else []),
        *(scripts.text(name, "job").rstrip("\n") for name in ("claim.sh", "race.sh")),
        "",
    ]


def _stage(run: Run) -> list[str]:
    if run.stage is None:
        return []
    kill, stop = windows(run.stage.kill_wait)
    return [
        "stage=yes # whether files are copied to the disk of the node",
        f"stage_time={run.stage.seconds} # seconds before the time limit that are kept for copying outputs",
        f"stage_kill={kill} # seconds after TERM at which your command is killed, to copy outputs",
        f"stage_window={stop if run.stage.kill_wait else 0} # seconds after TERM in which outputs are copied",
        f"stage_id={quote(run.id)}",
        scripts.text("stage.sh", "job").rstrip("\n"),
        "",
    ]


def _own_packages(plan: Plan) -> str:
    folders = " ".join(f'"$run/{layout.WORK}"/{quote(each)}' for each in plan.sources)
    return f"printf %s: {folders}" if folders else ":"


def _environment(setup: Setup) -> list[str]:
    lines = []
    if setup.modules:
        lines.append(f"load_modules {quote(setup.modules_init)}")
    for each in setup.modules:
        lines.append(f"load_module {quote(each)}")
    if setup.after_modules:
        lines += setup.after_modules.replace("\r", "").splitlines()
    if setup.env:
        lines.append(f"use_env {quote(setup.env)}{' unpack' if setup.unpack else ''}")
    if setup.venv:
        lines.append(f"use_venv {quote(setup.venv)}")
    if setup.conda:
        lines.append(f"use_conda {quote(setup.conda)}")
    return lines or [":"]


def data(plan: Plan) -> bytes:
    """Return the text of `data`: variables and the command, in single quotes, so that no value in it is expanded."""
    # The command is appended to "$@", so that no variable can overwrite what job.sh keeps there.
    lines = [b"# Values for job.sh, all in quotes."]
    lines += variables.lines(plan)
    if plan.run.name and (plan.native_lines or plan.array):  # Slurm's own name identifies the job
        lines.append(b"export SLURM_JOB_NAME=" + variables.quote_bytes(os.fsencode(plan.run.name)))
    if not own_words(plan):
        lines.append(_command(plan.words))
    if plan.run.tasks:
        lines.append(f'. "$YURT_RUN_DIR/{layout.SET}" # values of this task'.encode())
    if plan.array:
        lines += [line.encode() for line in _array(plan.array)]
    if plan.logs:
        from yurt.backends.job import log_files

        name = plan.run.name or layout.job_name(plan.run.id)
        lines += [line.encode() for line in log_files.lines(plan.logs, name)]
    return b"\n".join(lines) + b"\n"


def _array(indices: str) -> list[str]:
    """Return lines that set the variables of a job array as the user's script gave it: yurt numbers and splits it."""
    numbers = list(tasks.numbers(indices))
    _range, _, step = indices.partition(":")
    return [
        f'export SLURM_ARRAY_TASK_ID="${values.variable(values.ARRAY_INDEX)}"',
        f"export SLURM_ARRAY_TASK_COUNT={len(set(numbers))}",
        f"export SLURM_ARRAY_TASK_MIN={min(numbers)}",
        f"export SLURM_ARRAY_TASK_MAX={max(numbers)}",
        f"export SLURM_ARRAY_TASK_STEP={step if step.isdigit() else 1}",
        'export SLURM_ARRAY_JOB_ID="${SLURM_ARRAY_JOB_ID:-${SLURM_JOB_ID:-$YURT_SWEEP_ID}}"',
    ]


def own_words(plan: Plan) -> set[str]:
    """Return the names in braces in a sweep's command: parameters of its tasks, and `task`, the task number."""
    if not plan.sets or not (slots := values.slots(os.fsdecode(word) for word in plan.words)):
        return set()
    return slots & {"task", *(key for each in plan.sets for key in each)}


def _command(words: Iterable[bytes]) -> bytes:
    return b'set -- "$@" ' + b" ".join(variables.quote_bytes(word) for word in words)


def sets(plan: Plan) -> tuple[bytes, bytes]:
    """Return the files `sets` and `offsets` of a sweep: the values of each task, and their position in `sets`.

    All lines of `offsets` have the same length, so that task K can seek to line K.
    """
    common = plan.run.params
    named = own_words(plan)
    texts, offsets, at = [], [], 0
    for task, each in enumerate(plan.sets):
        number = task if plan.race is None else item_of(plan.race, task, len(plan.sets))
        named_values = values.variables(each)
        lines = [b"#" + msgspec.json.encode({**common, **each})]
        lines += [
            b"export " + name.encode() + b"=" + variables.quote_bytes(os.fsencode(value))
            for name, value in named_values.items()
        ]
        if named:
            filling = {"task": number, **each}
            lines.append(_command(os.fsencode(values.filled(os.fsdecode(word), filling)) for word in plan.words))
        rest = {key: value for key, value in each.items() if key not in named}
        words = values.words(rest) if plan.arguments else []
        if words:
            lines.append(_command(os.fsencode(word) for word in words))
        if plan.race is not None:  # candidates number their tasks differently
            lines.append(b"export YURT_TASK_INDEX=%d" % number)
        if plan.mrunner:
            from yurt.backends.job import mrunner_config

            lines += _mrunner(mrunner_config.content(plan.run, {**common, **each}))
        text = b"\n".join(lines) + b"\n"
        texts.append(text)
        offsets.append(b"%012d %08d\n" % (at, len(text)))
        at += len(text)
    return b"".join(texts), b"".join(offsets)


def _mrunner(content: bytes) -> list[bytes]:
    file = f'"$YURT_RUN_DIR/{layout.MRUNNER}"'.encode()
    aside = f'"$YURT_RUN_DIR/{layout.MRUNNER}.$$"'.encode()
    write = b"printf %s " + variables.quote_bytes(content) + b" > " + aside + b" && mv " + aside + b" " + file
    return [write, b'set -- "$@" --config ' + file]


def params(plan: Plan) -> bytes:
    """Return the text of params.json."""
    return msgspec.json.encode(plan.run.params) + b"\n"


def _one_line(text: str) -> str:
    """Make a text safe for a comment: no character in it ends the line."""
    shown = "".join(character if character.isprintable() else " " for character in text)
    return shown if len(shown) <= 500 else shown[:500] + " …"


PARTS = (
    "own.sh",
    "slurm.sh",
    "gate.sh",
    "profile.sh",
    "env_state.sh",
    "env_copy.sh",
    "environment.sh",
    "secrets.sh",
    "workdir.sh",
    "processes.sh",
    "command.sh",
    "inside.sh",
    "signals.sh",
    "time_limit.sh",
    "heartbeat.sh",
    "restart.sh",
    "sampler.sh",
    "ending.sh",
    "holder.sh",
    "main.sh",
)
"""The parts of job.sh in order: only functions, which main.sh calls at the end, and inside.sh before."""


@cache
def below_the_head() -> str:
    """Return the part of job.sh that is the same for every run."""
    return "".join(scripts.text(name, "job") for name in PARTS)


def gate() -> str:
    """Return the write-once functions that job.sh and the scripts that submit and cancel share."""
    return scripts.text("gate.sh", "job")


def claimer() -> str:
    """Return the functions of `gate`, and the one that claims an item of a race."""
    return gate() + scripts.text("claim.sh", "job")


def arbiter(folder: str) -> str:
    """Return the script that serves the claims of a race to those who have its key."""
    return claimer() + scripts.text("arbiter.sh", "job") + f"serve {quote(folder)}\n"


def closer() -> str:
    """Return the functions of `gate`, and those that close the gate of a run."""
    return gate() + scripts.text("close.sh", "job")


def placer() -> str:
    """Return the script that uploads a run and submits its job."""
    return scripts.text("env_state.sh", "job") + scripts.text("place.sh", "job")
