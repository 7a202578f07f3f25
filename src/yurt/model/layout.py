"""Every path of a project and of a run on a context, named once, for Python and for sh. Pure.

The names are a protocol with runs that older versions of yurt have submitted: they stay.
"""

from __future__ import annotations

import re

from yurt.model import ids
from yurt.model.digest import digest

# What is in a run folder when it is made.
RUN = "run.json"
PLAN = "plan.json"
JOB = "job.sh"
DATA = "data"
"""The user's variables and command, sourced by job.sh."""
PARAMS = "params.json"
CODE = "code"
"""Names the tree of the run's code."""
NO_LINKS = "no-links"
"""There if the disk has no hard links."""
SECRET = "secret."
"""Before the nonce of a submission: its shares of secrets."""

# What a sweep has beside that.
SETS = "sets"
OFFSETS = "offsets"
CALLS = "calls"
"""Calls of functions that its tasks make."""
TASKS = "tasks"
"""The folder of its tasks' run folders."""
SENT = "sent"
"""Which groups of tasks were submitted as which jobs."""

# What a task has of its own.
SET = "set"
RESULT = "result"
"""What the call of a function returned."""

# What is written once, and decides: see gate.sh. On a disk without hard links these are folders, see `written`.
WINNER = "winner"
"""Who passed the gate: NONCE.JOB, or `cancelled`."""
EXIT = "exit.json"
"""How the run ended, written by its job."""
STATUS = "status.json"
"""How the run ended, settled by yurt."""
START = "gen."
"""Before the number of a start: who made it."""
END = "end."
"""Before the number of a start: how it ended."""
STOPPED = "stopped."
"""Before the number of a start: why it was told to stop."""
FENCED = "fenced."
"""Before the number of a start: a later start has taken over."""

# What comes and goes while it runs.
CANCEL = "cancel"
"""There if the user wants the run, or all of the sweep, ended."""
BEAT = "beat."
"""Before the number of a start: renamed as long as that start lives."""
CHILD = "child."
"""Before the number of a start, on this machine: the process of the user's command."""
JOBS = "jobs"
"""The ids of its jobs."""

# What the run writes.
OUT_LOG = "out.log"
ERR_LOG = "err.log"
METRICS = "metrics.jsonl"
OUTPUTS = "outputs"
CHECKPOINTS = "checkpoints"
WORK = "work"


def written(name: str) -> tuple[str, str]:
    """The two places where a text may be that was written once under a name."""
    return name, f"{name}.d/text"


def fill_in(script: str) -> str:
    """An sh script with the names of this module in the place of @NAME@. ValueError for a name that is not here."""
    return re.sub(r"@([A-Z_]+)@", _name, script)


def _name(found: re.Match[str]) -> str:
    name = globals().get(found[1])
    if not isinstance(name, str):
        raise ValueError(f"{found[0]}: there is no {found[1]} in {__name__}")
    return name


JOB_PREFIX = "yurt-"
"""Jobs are called by it and the run's id."""


def job_name(run: str) -> str:
    return JOB_PREFIX + run


def run_of(job: str) -> str:
    """The run a job's name stands for; empty if it is none of yurt's."""
    run = job.removeprefix(JOB_PREFIX)
    return run.partition("+")[0] if run != job else ""


def offset_of(job: str) -> int:
    """What is added to the numbers of an array's tasks to get those of the sweep's."""
    offset = job.partition("+")[2]
    return int(offset) if offset.isdigit() else 0


def project_label(name: str, folder: str) -> str:
    """What a project is called in storage: its name made plain, and a short id of the folder it lives in."""
    plain = re.sub(r"[^a-z0-9._]+", "-", name.lower()).strip("-.")[:40] or "project"
    return f"{plain}-{ids.short(int.from_bytes(digest(folder)), 4)}"


def base(storage: str) -> str:
    """yurt's own folder on a site."""
    return f"{storage.rstrip('/')}/yurt"


def module(project_folder: str, name: str) -> str:
    """The folder of the module `yurt` for scripts inside a run, beside the projects."""
    return f"{project_folder.rpartition('/projects/')[0]}/node/{name}"


def project(base_folder: str, label: str) -> str:
    return f"{base_folder}/projects/{label}"


def sweep(project_folder: str, sweep_id: str) -> str:
    return f"{project_folder}/sweeps/{sweep_id}"


def task(sweep_folder: str, index: int) -> str:
    return f"{sweep_folder}/{TASKS}/{index}"


def run(project_folder: str, run_id: str) -> str:
    return f"{project_folder}/runs/{run_id}"


def project_of(run_folder: str) -> str:
    """The folder of the project that a run, a sweep or a task is of."""
    return re.split(rf"/(?:runs|sweeps)/[^/]+(?:/{TASKS}/\d+)?$", run_folder)[0]
