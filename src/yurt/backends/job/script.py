"""Writes job.sh and its data: what a run executes, readable, the same on every kind of context. Pure.

What stands in job.sh is quoted by one function; values of the user's are in `data`, beside it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from functools import cache

import msgspec

from yurt.backends import scripts
from yurt.backends.job import module
from yurt.model import layout
from yurt.model import params as values
from yurt.model.run import Plan, Run, Setup

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
"""Variables that do not keep the value one gives them."""


def job(plan: Plan, *, submitted_as: str, next_start: str = "") -> str:
    """The text of job.sh; `next_start` is what submits a job for a later start, with what follows it."""
    run, setup, policy = plan.run, plan.setup, plan.run.restart_policy
    title = " ".join(shlex.quote(word) for word in run.command)
    code = f"{plan.project_folder}/snapshots/{run.code.tree}" if run.code.tree else ""
    head = [
        "#!/bin/sh",
        *plan.native_lines,
        f"# yurt run {run.id} on {run.context}: {_one_line(title)}",
        f"# Submitted as: {_one_line(submitted_as)}",
        "# By hand, in this terminal, without touching the run's record: sh job.sh",
        "",
        f"kind={quote(run.context_type)}",
        *_place_of(run),
        f"code={quote(code)}",
        f"subfolder={quote(run.subfolder)}",
        f"place={quote(plan.place)}",
        f"copy={'yes' if plan.copy else ''}",
        f"launcher={'srun' if plan.use_srun else ''}",
        f"container={quote(setup.container)}",
        f"gpus={run.resources.gpus or ''}",
        f"imports={quote(layout.module(plan.project_folder, module.name()))} # for Python: import yurt",
        f"limit={plan.limit or ''} # seconds",
        f"requeues={policy.max_requeues} # how often it may be started again after its limit, or when it asks for it",
        f"before={policy.signal_before} # seconds before its limit at which it is told to save",
        f"retries={policy.retries} # how often it may be started again after a failure of its site's",
        f"errors={'yes' if policy.retry_errors else ''} # whether an error of its own counts as one",
        f"follow={'yes' if plan.follow else ''} # whether its next start is another job",
        f"lease={plan.lease} # seconds",
        f"grace={plan.grace} # seconds between TERM and KILL, where no scheduler sees to it",
        f"secrets={quote(' '.join(run.secrets))}",
        f"shares={'stay' if policy else 'go'} # those of secrets, once it has started",
        "",
        *(["submit() { # a later start", f'  {next_start} "$@"', "}", ""] if next_start and policy else []),
        *_predecessors(run),
        "environment() { # as your context and your flags have it",
        *(f"  {line}" for line in _environment(setup)),
        "}",
        "",
        "# From here on every run's script is the same.",
    ]
    return "\n".join(head) + "\n" + below_the_head()


def _place_of(run: Run) -> list[str]:
    if not run.tasks:
        return ["sweep=", f"run={quote(run.folder)}"]
    return [
        f"sweep={quote(run.folder)}",
        "case ${1-} in",
        "  inside | heartbeat) ;;",
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
        "predecessors_completed() { # whether the runs that come before it completed",
        f"  all_completed {folders}",
        "}",
        "",
    ]


def _environment(setup: Setup) -> list[str]:
    lines = []
    if setup.modules:
        lines.append(f"load_modules {quote(setup.modules_init)}")
    for each in setup.modules:
        lines.append(f"module load {quote(each)} || fail {quote(f'module load {each} failed')}")
    if setup.after_modules:
        lines += setup.after_modules.replace("\r", "").splitlines()
    if setup.venv:
        lines.append(f". {quote(setup.venv + '/bin/activate')} || fail {quote(f'there is no venv {setup.venv}')}")
    if setup.conda:
        lines.append(f"use_conda {quote(setup.conda)}")
    return lines or [":"]


def variables_of(plan: Plan) -> dict[str, bytes]:
    """The variables of a run: yurt's own, and the user's, which win. Those of a sweep are of its last task."""
    number = b"%d" % (len(plan.sets) - 1)
    return {**{name: number.join(parts) for name, parts in _own(plan.run).items()}, **plan.variables}


def _own(run: Run) -> dict[str, tuple[bytes, ...]]:
    """The variables yurt sets. In those of a sweep a task's number, which only the job has, is between two parts."""
    id_, folder = run.id.encode(), os.fsencode(run.folder)

    def place(name: str = "") -> tuple[bytes, ...]:
        below = f"/{name}".encode() if name else b""
        return (folder + f"/{layout.TASKS}/".encode(), below) if run.tasks else (folder + below,)

    return {
        "YURT_RUN_ID": (id_ + b".", b"") if run.tasks else (id_,),
        "YURT_RUN_DIR": place(),
        "YURT_CONTEXT": (run.context.encode(),),
        "YURT_OUTPUTS": place(layout.OUTPUTS),
        "YURT_CHECKPOINTS": place(layout.CHECKPOINTS),
        "YURT_PARAMS": place(layout.PARAMS),
        **({"YURT_SWEEP_ID": (id_,)} if run.tasks else {}),
        "PYTHONDONTWRITEBYTECODE": (b"1",),
        "PYTHONUNBUFFERED": (b"1",),
    }


def data(plan: Plan) -> bytes:
    """The text of `data`: variables and the command, each in single quotes, so that nothing in it is executed."""
    # The command is added to "$@", where no variable can reach what job.sh keeps there.
    lines = [b"# Values for job.sh, all in quotes."]
    variables = {**_own(plan.run), **{name: (value,) for name, value in plan.variables.items()}}
    for name, parts in variables.items():
        value = b'"$YURT_TASK_INDEX"'.join(quote_bytes(each) for each in parts)
        lines.append(b"export " + name.encode() + b"=" + value)
    if not own_words(plan):
        lines.append(_command(plan.words))
    if plan.run.tasks:
        lines.append(f'. "$YURT_RUN_DIR/{layout.SET}" # what this task has of its own'.encode())
    return b"\n".join(lines) + b"\n"


def own_words(plan: Plan) -> set[str]:
    """What the command of a sweep names in braces: parameters of its tasks, and `task`, the number of each."""
    if not plan.sets or not (slots := values.slots(os.fsdecode(word) for word in plan.words)):
        return set()
    return slots & {"task", *(key for each in plan.sets for key in each)}


def _command(words: Iterable[bytes]) -> bytes:
    return b'set -- "$@" ' + b" ".join(quote_bytes(word) for word in words)


def sets(plan: Plan) -> tuple[bytes, bytes]:
    """The files `sets` and `offsets` of a sweep: what each task has of its own, and where in `sets` it is.

    A line of `offsets` has always the same length, so that task K reads line K, however many there are.
    """
    common = plan.run.params
    named = own_words(plan)
    texts, offsets, at = [], [], 0
    for number, each in enumerate(plan.sets):
        variables = values.variables(each)
        lines = [b"#" + msgspec.json.encode({**common, **each})]
        lines += [
            b"export " + name.encode() + b"=" + quote_bytes(os.fsencode(value)) for name, value in variables.items()
        ]
        if named:
            filling = {"task": number, **each}
            lines.append(_command(os.fsencode(values.filled(os.fsdecode(word), filling)) for word in plan.words))
        rest = {key: value for key, value in each.items() if key not in named}
        words = values.words(rest) if plan.arguments else []
        if words:
            lines.append(_command(os.fsencode(word) for word in words))
        text = b"\n".join(lines) + b"\n"
        texts.append(text)
        offsets.append(b"%012d %08d\n" % (at, len(text)))
        at += len(text)
    return b"".join(texts), b"".join(offsets)


def params(plan: Plan) -> bytes:
    """The text of params.json."""
    return msgspec.json.encode(plan.run.params) + b"\n"


def quote(text: str) -> str:
    """The one way in which text gets into a script."""
    return shlex.quote(text)


def quote_bytes(value: bytes) -> bytes:
    return b"'" + value.replace(b"'", b"'\"'\"'") + b"'"


def _one_line(text: str) -> str:
    """For a comment: nothing in it ends the line."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    return shown if len(shown) <= 500 else shown[:500] + " …"


PARTS = (
    "gate.sh",
    "environment.sh",
    "secrets.sh",
    "workdir.sh",
    "command.sh",
    "signals.sh",
    "time_limit.sh",
    "heartbeat.sh",
    "restart.sh",
    "ending.sh",
    "main.sh",
)
"""What job.sh is made of, in this order: only functions, until main.sh calls them."""


@cache
def below_the_head() -> str:
    """The part of job.sh that is the same for every run."""
    return "".join(scripts.text(name, "job") for name in PARTS)


def gate() -> str:
    """Functions that decide once: shared by job.sh and the scripts that submit and cancel."""
    return scripts.text("gate.sh", "job")


def closer() -> str:
    """The functions that close the gate of a run, with those of `gate`."""
    return gate() + scripts.text("close.sh", "job")


def placer() -> str:
    """The script that places a run on its context."""
    return scripts.text("place.sh", "job")
