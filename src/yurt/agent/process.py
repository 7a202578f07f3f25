"""Starts and stops the process of the agent."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from yurt.config import paths
from yurt.contexts import agent_state as state
from yurt.errors import RefusedError

PATIENCE = 20.0
"""Seconds that the agent has to start, and to stop."""

LARGEST_LOG = 1 << 20


def launch(interval: float, budget: int) -> None:
    """Start the agent as a process of its own. RefusedError with its last words if it does not start."""
    paths.make_private(state.folder())
    argv = [sys.executable, "-P", "-m", "yurt", "agent", "start", "--foreground", "--interval", f"{interval:g}s"]
    argv += ["--budget", str(budget)]
    with open(state.log_file(), "ab", opener=lambda path, flags: os.open(path, flags, 0o600)) as log:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/", close_fds=True
        )
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if _describes(process.pid):
            return
        if process.poll() is not None:
            raise RefusedError(
                f"the agent did not start: {_last_words()}", code="agent-failed", hint=f"see {state.log_file()}"
            )
        time.sleep(0.02)
    raise RefusedError("the agent did not start in time", code="agent-failed", hint=f"see {state.log_file()}")


def program() -> list[str]:
    """Return the command line of this yurt."""
    found = Path(sys.executable).with_name("yurt")
    return [str(found)] if os.access(found, os.X_OK) else [sys.executable, "-P", "-m", "yurt"]


def _describes(pid: int) -> bool:
    found = state.read()
    return found is not None and found.pid == pid and state.is_running()


def _last_words() -> str:
    try:
        lines = state.log_file().read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    return next((line for line in reversed(lines) if line.strip()), "no message").removeprefix("yurt: ")


def stop() -> bool:
    """Stop the agent; return whether there was one. RefusedError if it does not end in time."""
    found = state.read()
    if found is None or not state.is_running():
        return False
    if found.host != os.uname().nodename:
        raise RefusedError(
            f"the agent runs on {found.host}", code="agent-elsewhere", hint=f"run `yurt agent stop` on {found.host}"
        )
    deadline = time.monotonic() + PATIENCE
    with contextlib.suppress(ProcessLookupError):  # it has just ended
        os.kill(found.pid, signal.SIGTERM)
    while state.is_running():
        if time.monotonic() > deadline:
            raise RefusedError(
                f"the agent (process {found.pid}) is still busy with its last round",
                code="agent-busy",
                hint="run `yurt agent stop` again; killing it loses nothing",
            )
        time.sleep(0.02)
    return True


def rotate_log() -> None:
    """Start a new log if the old one is large; called by the agent, whose output goes there."""
    file = state.log_file()
    try:
        if file.stat().st_size > LARGEST_LOG and os.fstat(1).st_ino == file.stat().st_ino:
            file.replace(file.with_name("log.1"))
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            for stream in (1, 2):
                os.dup2(descriptor, stream)
            os.close(descriptor)
    except OSError:
        return
