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

HOLD_DEV = 'exec python3 -I -S -B -c "$1" "${YURT_RUN_DIR%/projects/*}/node/$2" hold'
"""Keeps a dev node: restores its workspace, backs it up, and waits."""

CONFIGURATION = "YURT_DEV"
"""The variable with the configuration of that program."""

START_SERVICE = START.replace("node.dev", "node.service")
RUN_SERVICE = HOLD_DEV.removesuffix(" hold")
SERVICE = "YURT_SERVICE"
"""The variable with the configuration of a service."""


class Program(msgspec.Struct, frozen=True):
    """A program of yurt that a job runs instead of a command of the user."""

    purpose: Purpose
    words: Sequence[str]
    """The command."""
    shown: list[str]
    """The command as users see it."""
    variables: dict[str, bytes] = {}


def program_of(request: Request) -> Program | None:
    """Return the program that the job of a request runs; None if it runs a command of the user."""
    if request.dev is not None:
        words = ("sh", "-c", HOLD_DEV, "sh", START, module.name("dev"))
        return Program("dev", words, ["dev", request.name], {CONFIGURATION: msgspec.json.encode(request.dev)})
    if request.service is not None:
        words = ("sh", "-c", RUN_SERVICE, "sh", START_SERVICE, module.name("service"))
        own = [str(word) for word in request.service.get("words") or ()]
        shown = ["serve", *(["--", *own] if own else [str(request.service["program"])])]
        return Program("service", words, shown, {SERVICE: msgspec.json.encode(request.service)})
    if request.session:
        return Program("shell", HOLD, ["shell", *(["--", *request.words] if request.words else [])])
    return None


def on_the_node(planned: Planned) -> Planned:
    """Change the plan of a service or a dev node: it runs once, and a dev node on the node, not in a container.

    RefusedError: Slurm starts the container of a service.
    """
    plan = planned.plan
    if plan.run.purpose not in ("dev", "service"):
        return planned
    if plan.run.purpose == "service":
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
