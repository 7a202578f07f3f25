"""Decides for which sweeps processes stay. Pure."""

from __future__ import annotations

import msgspec

from yurt.backends.job import script
from yurt.model import layout
from yurt.model.run import Plan


def may_stay(plan: Plan) -> bool:
    """Whether one process may run several tasks: calls that need nothing which job.sh does around each command.

    A process on a GPU keeps memory on it, so each call with a GPU has a process of its own.
    """
    run, setup = plan.run, plan.setup
    special = (run.restart_policy, run.resources.gpus, run.stage, plan.race, plan.holder, plan.copy, plan.mrunner)
    return (
        plan.calls
        and plan.calls_per_process != 1
        and not any(special)
        and not (setup.container or setup.unpack)
        and not plan.native_lines
        and not plan.writable
    )


def about(plan: Plan) -> str:
    """Return what a runner needs to know of a sweep, as JSON."""
    run = plan.run
    return msgspec.json.encode(
        {
            "limit": plan.limit,
            "grace": plan.grace,
            "code": layout.snapshot(plan.project_folder, run.code.tree) if run.code.tree else "",
            "subfolder": run.subfolder,
            "place": plan.place,
            "calls": plan.calls_per_process,
            "own": [*layout.chain(run.folder), f"{run.folder}/{layout.CALLS}", *script.used(plan)],
        }
    ).decode()
