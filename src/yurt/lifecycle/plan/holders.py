"""The commands of jobs that keep a node for their user: a session of `yurt shell`, or a dev node."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from yurt.backends.job import module
from yurt.lifecycle.plan.request import Planned, Request
from yurt.model import layout
from yurt.model.run import Purpose, Setup

HOLD = ("sh", "-c", f'exec sh "$YURT_RUN_DIR/{layout.JOB}" hold')
"""The command of a job that keeps its resources for sessions; see backends/job/holder.sh."""

START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from yurt.node.dev.__main__ import main; sys.exit(main())"
"""Starts a word of the program of a dev node. Arguments: the folder of the modules, the word."""

HOLD_DEV = 'exec python3 -I -S -c "$1" "${YURT_RUN_DIR%/projects/*}/node/$2" hold'
"""Keeps a dev node: restores its workspace, backs it up, and waits."""

CONFIGURATION = "YURT_DEV"
"""The variable with the configuration of that program."""


def words(request: Request) -> Sequence[str]:
    """Return the command of the job, if it is not the words of the request; else nothing."""
    if request.dev is not None:
        return ("sh", "-c", HOLD_DEV, "sh", START, module.name(dev=True))
    return HOLD if request.session else ()


def variables(request: Request) -> dict[str, bytes]:
    return {} if request.dev is None else {CONFIGURATION: msgspec.json.encode(request.dev)}


def purpose(request: Request) -> Purpose:
    if request.dev is not None:
        return "dev"
    return "shell" if request.session else "run"


def shown(request: Request) -> list[str]:
    """Return the command as users see it; nothing for a command of the user."""
    if request.dev is not None:
        return ["dev", request.name]
    if request.session:
        return ["shell", *(["--", *request.words] if request.words else [])]
    return []


def on_the_node(planned: Planned) -> Planned:
    """Return the plan of a dev node: its program runs once, on the node itself, not in a container."""
    plan = planned.plan
    ignored = ["a dev node runs on the node itself; its container is ignored"] if plan.setup.container else []
    setup = msgspec.structs.replace(plan.setup, container=Setup().container, pyxis=Setup().pyxis)
    made = msgspec.structs.replace(plan, setup=setup, use_srun=False)
    return msgspec.structs.replace(planned, plan=made, warnings=[*planned.warnings, *ignored])
