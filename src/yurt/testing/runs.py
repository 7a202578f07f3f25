"""Helpers for tests of backends: submit, observe and follow plans; small commands for tests."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from yurt.backends.answers import CodeParcel, Placed
from yurt.backends.base import Backend
from yurt.clocks import clocks
from yurt.model.growth import Growing, Known
from yurt.model.run import Placement, Plan, RunRef, Status
from yurt.model.state import ATTEMPTS, Observation, next_status

Planner = Callable[..., Plan]

VALUE = 'it\'s "$HOME" `id`\n\ttwo lines \\ ü'

TICKING = 'while :; do echo . >> "$YURT_OUTPUTS/alive"; sleep 0.1; done;'
"""Appends to a file forever."""

STUBBORN = f"""\
trap '' TERM
sh -c 'trap "" TERM; {TICKING}' &
wait
"""
"""Neither the command nor its child exits on TERM."""

LISTENS = """\
import socket
server = socket.create_server(("", 0))
print(server.getsockname()[1], flush=True)
link, _from = server.accept()
link.sendall(b"hello from the run")
"""
"""Prints the port it listens on, and greets the first client."""

PATIENT = 'echo begun; until [ -e "$YURT_RUN_DIR/go" ] || [ ! -d "$YURT_RUN_DIR" ]; do sleep 0.1; done'
"""Runs until a file `go` exists, or its folder is removed."""


def ref(plan: Plan) -> RunRef:
    return RunRef(plan.run.id, plan.run.folder, plan.run.created)


def submit(backend: Backend, plan: Plan, *, start: int = 1) -> Placed:
    """Submit a plan without code."""
    return backend.runs.submit(plan, secrets.token_hex(4), CodeParcel(), start=start)


def observe(backend: Backend, plan: Plan) -> Observation:
    return backend.runs.observe([ref(plan)]).runs[plan.run.id]


def submitted() -> Status:
    """Return the status of a run that was just submitted and must not be submitted again."""
    return Status(state="queued", submitted=time.time(), attempts=ATTEMPTS)


def follow(backend: Backend, plan: Plan, *, seconds: float = 240) -> Status:
    """Poll until a run has finished, without the delay with which yurt waits for late records."""
    status, deadline = submitted(), time.monotonic() + seconds
    while True:
        ahead = clocks().settling if status.missing_since else 0
        status = next_status(status, observe(backend, plan), time.time() + ahead)
        if status.final:
            return status
        assert time.monotonic() < deadline, f"still {status} after {seconds} s"
        time.sleep(0.2)


def read(backend: Backend, plan: Plan, name: str) -> str:
    """Return a file of a run folder; empty if it does not exist."""
    return (backend.files.read(plan.run.folder, name) or b"").decode()


def inside(backend: Backend, plan: Plan, *words: str) -> int:
    """Run a command inside a running run; return its exit code."""
    run, seen = plan.run, observe(backend, plan)
    placement = Placement(
        context=run.context,
        context_type=run.context_type,
        folder=run.folder,
        resources=run.resources,
        job=seen.job,
    )
    return backend.exec.run(placement, words, terminal=False)


class Grown:
    """Collects the new bytes of files: where they begin, the bytes, and what the site said of the file."""

    def __init__(self) -> None:
        self.files: dict[str, tuple[int, bytes, str]] = {}
        self._path = ""

    def begin(self, at: int, path: str, seen: str, start: int) -> None:
        assert at == 0
        self._path = path
        self.files[path] = start, b"", seen

    def more(self, part: bytes) -> None:
        start, content, seen = self.files[self._path]
        self.files[self._path] = start, content + part, seen

    def end(self) -> None:
        self._path = ""


def grown(backend: Backend, plan: Plan, known: list[Known]) -> dict[str, tuple[int, bytes, str]]:
    """Return the new bytes of the files of a run."""
    found = Grown()
    backend.files.grow([Growing(folder=plan.run.folder, known=known)], ["metrics", "events"], found)
    return found.files


def let_go(backend: Backend, plan: Plan) -> None:
    """Let a run of PATIENT finish."""
    assert inside(backend, plan, "sh", "-c", ': > "$YURT_RUN_DIR/go"') == 0
