"""Every path of a project and of a run on a context, named once. Pure."""

from __future__ import annotations

import re

from yurt.model import ids
from yurt.model.digest import digest

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
    return f"{sweep_folder}/tasks/{index}"


def run(project_folder: str, run_id: str) -> str:
    return f"{project_folder}/runs/{run_id}"
