"""What tests of backends share: plans are submitted, observed and followed; small commands that do as tests need."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from yurt.backends.answers import CodeParcel, Placed
from yurt.backends.base import Backend
from yurt.clocks import clocks
from yurt.model.run import Placement, Plan, RunRef, Status
from yurt.model.state import ATTEMPTS, Observation, next_status

Planner = Callable[..., Plan]

VALUE = 'it\'s "$HOME" `id`\n\ttwo lines \\ ü'

TICKING = 'while :; do echo . >> "$YURT_OUTPUTS/alive"; sleep 0.1; done;'
"""Shows for ever that it is alive."""

STUBBORN = f"""\
trap '' TERM
sh -c 'trap "" TERM; {TICKING}' &
wait
"""
"""Neither the command nor its child ends when it is asked to."""

LISTENS = """\
import socket
server = socket.create_server(("", 0))
print(server.getsockname()[1], flush=True)
link, _from = server.accept()
link.sendall(b"hello from the run")
"""
"""Says on which port it listens, and greets whoever comes first."""

PATIENT = 'echo begun; until [ -e "$YURT_RUN_DIR/go" ] || [ ! -d "$YURT_RUN_DIR" ]; do sleep 0.1; done'
"""Runs until there is a file `go`, or its folder is gone."""


def ref(plan: Plan) -> RunRef:
    return RunRef(plan.run.id, plan.run.folder, plan.run.created)


def submit(backend: Backend, plan: Plan, *, start: int = 1) -> Placed:
    """One submission of a plan without code."""
    return backend.runs.submit(plan, secrets.token_hex(4), CodeParcel(), start=start)


def observe(backend: Backend, plan: Plan) -> Observation:
    return backend.runs.observe([ref(plan)]).runs[plan.run.id]


def submitted() -> Status:
    """How a run stands that went out just now, and would not be sent again."""
    return Status(state="queued", submitted=time.time(), attempts=ATTEMPTS)


def follow(backend: Backend, plan: Plan, *, seconds: float = 240) -> Status:
    """Look until a run has ended. What yurt would wait for late news of it is not waited for here."""
    status, deadline = submitted(), time.monotonic() + seconds
    while True:
        ahead = clocks().settling if status.missing_since else 0
        status = next_status(status, observe(backend, plan), time.time() + ahead)
        if status.final:
            return status
        assert time.monotonic() < deadline, f"after {seconds} s it is still {status}"
        time.sleep(0.2)


def read(backend: Backend, plan: Plan, name: str) -> str:
    """A file of a run folder; empty if it is not there."""
    return (backend.files.read(plan.run.folder, name) or b"").decode()


def inside(backend: Backend, plan: Plan, *words: str) -> int:
    """Run a command inside a running run; returns its exit code."""
    run, seen = plan.run, observe(backend, plan)
    placement = Placement(
        context=run.context,
        context_type=run.context_type,
        folder=run.folder,
        resources=run.resources,
        job=seen.job,
    )
    return backend.exec.run(placement, words, node=seen.node, terminal=False)


def let_go(backend: Backend, plan: Plan) -> None:
    """End a run of PATIENT."""
    assert inside(backend, plan, "sh", "-c", ': > "$YURT_RUN_DIR/go"') == 0
