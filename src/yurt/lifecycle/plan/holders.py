"""The commands of jobs that run a program of yurt: a session of `yurt shell`, a dev node, or a service."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from yurt.backends.job import module
from yurt.errors import RefusedError
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

START_SERVICE = START.replace("node.dev", "node.service")
RUN_SERVICE = HOLD_DEV.removesuffix(" hold")
SERVICE = "YURT_SERVICE"
"""The variable with the configuration of a service."""


def words(request: Request) -> Sequence[str]:
    """Return the command of the job, if it is not the words of the request; else nothing."""
    if request.dev is not None:
        return ("sh", "-c", HOLD_DEV, "sh", START, module.name("dev"))
    if request.service is not None:
        return ("sh", "-c", RUN_SERVICE, "sh", START_SERVICE, module.name("service"))
    return HOLD if request.session else ()


def variables(request: Request) -> dict[str, bytes]:
    if request.service is not None:
        return {SERVICE: msgspec.json.encode(request.service)}
    return {} if request.dev is None else {CONFIGURATION: msgspec.json.encode(request.dev)}


def purpose(request: Request) -> Purpose:
    if request.dev is not None:
        return "dev"
    if request.service is not None:
        return "service"
    return "shell" if request.session else "run"


def shown(request: Request) -> list[str]:
    """Return the command as users see it; nothing for a command of the user."""
    if request.dev is not None:
        return ["dev", request.name]
    if request.service is not None:
        words = [str(word) for word in request.service.get("words") or ()]
        return ["serve", *(["--", *words] if words else [str(request.service["program"])])]
    if request.session:
        return ["shell", *(["--", *request.words] if request.words else [])]
    return []


def on_the_node(request: Request, planned: Planned) -> Planned:
    """Return the plan of a program of yurt: it runs once, and a dev node runs on the node, not in a container."""
    plan = planned.plan
    if request.service is not None:
        if plan.setup.pyxis:
            raise RefusedError(
                "a service cannot run in a container that Slurm starts: nothing outside would reach its socket",
                code="impossible",
                hint="run it without a container: `--container ''`",
            )
        return msgspec.structs.replace(planned, plan=msgspec.structs.replace(plan, use_srun=False))
    ignored = ["a dev node runs on the node itself; its container is ignored"] if plan.setup.container else []
    setup = msgspec.structs.replace(plan.setup, container=Setup().container, pyxis=Setup().pyxis)
    made = msgspec.structs.replace(plan, setup=setup, use_srun=False)
    return msgspec.structs.replace(planned, plan=made, warnings=[*planned.warnings, *ignored])
