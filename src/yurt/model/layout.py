"""The names of all paths of projects and runs on a context, for Python and sh. Pure.

The names are a protocol with runs that older versions of yurt submitted: do not change them.
"""

from __future__ import annotations

import re

from yurt.model import ids
from yurt.model.digest import digest

# In every new run folder.
RUN = "run.json"
PLAN = "plan.json"
JOB = "job.sh"
DATA = "data"
"""The user's variables and command, sourced by job.sh."""
PARAMS = "params.json"
CODE = "code"
"""The id of the code tree of the run."""
NO_LINKS = "no-links"
"""Exists if the file system has no hard links."""
SECRET = "secret."
"""Prefix, followed by the nonce of a submission: its shares of secrets."""

# Only in the folder of a sweep.
SETS = "sets"
OFFSETS = "offsets"
CALLS = "calls"
"""Function calls that its tasks run."""
TASKS = "tasks"
"""The folder that contains the run folders of its tasks."""
SENT = "sent"
"""Which groups of tasks were submitted as which jobs."""
SLURM_ERRORS = "slurm."
"""Prefix, followed by the job of a task: errors that Slurm itself prints about it. A task removes it at its end."""

# Only in the folder of a task.
SET = "set"
MRUNNER = "mrunner.pkl"
"""Its parameters, for get_configuration() of an installed mrunner."""
RESULT = "result"
"""The return value of a function call."""

# Written once, atomically: see gate.sh. On a file system without hard links these are folders, see `written`.
WINNER = "winner"
"""Who passed the gate: NONCE.JOB, or `cancelled`."""
EXIT = "exit.json"
"""The end of the run, written by its job."""
STATUS = "status.json"
"""The final status of the run, written by yurt."""
START = "gen."
"""Prefix, followed by the number of a start: who made it."""
END = "end."
"""Prefix, followed by the number of a start: how it ended."""
STOPPED = "stopped."
"""Prefix, followed by the number of a start: why it was signalled to stop."""
FENCED = "fenced."
"""Prefix, followed by the number of a start: which start took over, and the times of its first and last heartbeat."""

# Temporary, while the run is running.
CANCEL = "cancel"
"""Exists if the user cancelled the run or the whole sweep."""
BEAT = "beat."
"""Prefix, followed by the number of a start: the heartbeat, renamed while that start runs."""
CHILD = "child."
"""Prefix, followed by the number of a start, on this machine: the process of the user's command."""
SESSION = "session."
"""Prefix, followed by the process of a session: `live PID BEGAN`, `ended CODE` or `lost`."""
ATTACHED = "attached"
"""Exists once a session has begun."""
CODE_OF_STEP = "code."
"""Prefix, followed by a random word: the exit code of a command of `yurt shell`."""
ENVIRONMENT = "environment"
"""For sessions: the variables that the scheduler set for the job."""
WANT = "want."
"""Prefix, followed by a word of its own, in a race: a claim for yurt to carry to the arbiter: ITEM CANDIDATE."""
ANSWER = "answer."
"""Prefix, followed by the same word: who holds that item."""
ROUNDS = "rounds"
"""In a race, a line for each time that its job gave its node back without an answer."""
STAGE = "stage."
"""Prefix, followed by the name of a node: what its staged files are: see yurt.node.stage.keeper."""
STAGE_END = "stage-end"
"""With several nodes: begins with `end` when the command has ended."""
JOBS = "jobs"
"""The ids of its jobs."""
ENV_WAIT = "env-wait"
"""If its job waits for a home sync and for its environment: the folder of the environment."""

USAGE = "usage"
"""Samples of what the processes of the run use: see sampler.sh. A task removes it at its end."""

# Written by the run.
OUT_LOG = "out.log"
ERR_LOG = "err.log"
METRICS = "metrics.jsonl"
OUTPUTS = "outputs"
CHECKPOINTS = "checkpoints"
WHY = "why"
"""Why the environment of the command could not be set up; in exit.json after the end."""
SAID = "said"
"""What a program of yurt says about its end, such as the holder of a dev node; in exit.json after the end."""
PROFILE = "profile.json"
"""What the profile of the login shell set: names, and a checksum of the values. In a sweep, of its first task."""
WORK = "work"
COPIED = "copied"
"""Written after the code was copied to `work`; files that the run writes there are newer."""


def written(name: str) -> tuple[str, str]:
    """Return the two paths that may contain a text written once under this name."""
    return name, f"{name}.d/text"


def fill_in(script: str) -> str:
    """Replace @NAME@ in an sh script by the names of this module. ValueError for an unknown name."""
    made, *rest = script.split("@")
    while rest:
        word = rest.pop(0)
        if rest and word and not word.strip(_IN_NAME):
            made += _named(word) + rest.pop(0)
        else:
            made += f"@{word}"
    return made


_IN_NAME = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"


def _named(name: str) -> str:
    text = globals().get(name)
    if not isinstance(text, str):
        raise ValueError(f"unknown name @{name}@: {__name__} does not define {name}")
    return text


JOB_PREFIX = "yurt-"
"""Prefix of job names, followed by the id of the run."""


def job_name(run: str) -> str:
    return JOB_PREFIX + run


def run_of(job: str) -> str:
    """Return the id of the run from a job name; empty if yurt did not submit the job."""
    run = job.removeprefix(JOB_PREFIX)
    return run.partition("+")[0] if run != job else ""


def offset_of(job: str) -> int:
    """Return the offset to add to the array indices of a job to get the task numbers of the sweep."""
    offset = job.partition("+")[2]
    return int(offset) if offset.isdigit() else 0


_IN_LABEL = "abcdefghijklmnopqrstuvwxyz0123456789._"


def project_label(name: str, folder: str) -> str:
    """Return the folder name of a project in storage: its simplified name and a short id of its source folder."""
    letters = (letter if letter in _IN_LABEL else " " for letter in name.lower())
    plain = "-".join("".join(letters).split()).strip("-.")[:40] or "project"
    return f"{plain}-{ids.short(int.from_bytes(digest(folder)), 4)}"


def project_name(label: str) -> str:
    """Return the simplified name of a project from its label."""
    return label.rpartition("-")[0]


def same_folder(label: str, other: str) -> bool:
    """Whether two labels are of the same source folder, whatever the name of the project was."""
    return label.rpartition("-")[2] == other.rpartition("-")[2]


def base(storage: str) -> str:
    """Return yurt's folder on a site."""
    return f"{storage.rstrip('/')}/yurt"


def module(project_folder: str, name: str) -> str:
    """Return the folder of the `yurt` module for scripts in a run, beside the projects."""
    return f"{project_folder.rpartition('/projects/')[0]}/node/{name}"


def project(base_folder: str, label: str) -> str:
    return f"{base_folder}/projects/{label}"


def snapshot(project_folder: str, tree: str) -> str:
    """Return the folder of a checkout of code."""
    return f"{project_folder}/snapshots/{tree}"


def sweep(project_folder: str, sweep_id: str) -> str:
    return f"{project_folder}/sweeps/{sweep_id}"


def task(sweep_folder: str, index: int) -> str:
    return f"{sweep_folder}/{TASKS}/{index}"


def run(project_folder: str, run_id: str) -> str:
    return f"{project_folder}/runs/{run_id}"


KINDS = ("projects", "envs", "workspaces", "races")
"""What is directly in yurt's folder on a site, with folders of its own."""


def env(base_folder: str, address: str) -> str:
    """Return the folder of an environment."""
    return f"{base_folder}/envs/{address}"


def workspace(base_folder: str, name: str) -> str:
    """Return the folder with the backups of the workspace of a dev node."""
    return f"{base_folder}/workspaces/{name}"


def race(base_folder: str, race_id: str) -> str:
    """Return the folder of a race: of its claims, or of the key with which a job reaches them."""
    return f"{base_folder}/races/{race_id}"


def home(folder: str) -> str:
    """Return yurt's folder in the home folder of a site, for environments."""
    return f"{folder.rstrip('/')}/.yurt"


def in_home(env_folder: str) -> bool:
    """Whether an environment is in the home folder of its site."""
    return env_folder.rpartition("/envs/")[0].endswith("/.yurt")


def tool(base_folder: str, name: str) -> str:
    """Return the path of a program that yurt keeps on a site."""
    return f"{base_folder}/tools/{name}"


KEPT = "yurt-kept"
"""The folder in a lasting tier with copies of results."""


def kept(tier: str, project: str, run_id: str) -> str:
    """Return the folder in a tier for the copy of a run, or of a task of a sweep."""
    sweep_id, _, number = run_id.partition(".")
    folder = f"{tier.rstrip('/')}/{KEPT}/{project}/{sweep_id}"
    return f"{folder}/{TASKS}/{number}" if number else folder


def chain(folder: str) -> list[str]:
    """Return yurt's folder on a site and the folders below it, down to this one; of a kept copy only itself."""
    if f"/{KEPT}/" in folder:
        return [folder]
    head, kind, below = max((folder.rpartition(f"/{kind}/") for kind in KINDS), key=lambda parts: len(parts[0]))
    if not kind:
        return [folder]
    names = [kind.strip("/"), *below.split("/")]
    return [head, *(f"{head}/{'/'.join(names[:count])}" for count in range(1, len(names) + 1))]


def project_of(run_folder: str) -> str:
    """Return the project folder of a run, a sweep or a task; of a kept copy, the folder of those of the project."""
    if f"/{KEPT}/" in run_folder:
        head, _, below = run_folder.rpartition(f"/{KEPT}/")
        return f"{head}/{KEPT}/{below.partition('/')[0]}"
    return re.split(rf"/(?:runs|sweeps)/[^/]+(?:/{TASKS}/\d+)?$", run_folder)[0]
