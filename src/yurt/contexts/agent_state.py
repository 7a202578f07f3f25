"""What the agent tells about itself: its lock, which shows that it runs, and its state file."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from yurt.config import paths
from yurt.errors import RefusedError


class AgentState(msgspec.Struct, frozen=True, kw_only=True):
    """The agent as it described itself after its last round."""

    pid: int
    """Its process id."""
    host: str
    """The machine that it runs on."""
    version: str
    """Its version of yurt."""
    began: float
    """When it was started."""
    interval: float
    """Seconds between two rounds while runs are unfinished."""
    budget: int = 20
    """Commands per minute that it sends to a context at most."""
    rounds: int = 0
    """How many rounds it has finished."""
    last: float | None = None
    """When its last round ended."""
    next: float | None = None
    """When its next round begins, if nothing happens before."""
    did: str = ""
    """What its last round did."""
    problems: list[str] = []
    """What went wrong in its last round."""
    operations: dict[str, int] = {}
    """By context: commands that it sent over ssh in the last minute."""
    connections: dict[str, int] = {}
    """By context: connections that it opened in the last minute."""


def folder() -> Path:
    return paths.data_home() / "agent"


def log_file() -> Path:
    return folder() / "log"


def read() -> AgentState | None:
    """Return what the agent last wrote; None if there is nothing."""
    try:
        return msgspec.json.decode((folder() / "agent.json").read_bytes(), type=AgentState)
    except (OSError, msgspec.MsgspecError):
        return None


def write(state: AgentState) -> None:
    """Replace the state file. OSError if the data folder is not writable."""
    paths.write_private(folder() / "agent.json", msgspec.json.encode(state))


def ask() -> None:
    """Let the agent begin a round at once. OSError if the data folder is not writable."""
    paths.write_private(_wanted(), b"")


def asked() -> int:
    """Return a number that `ask` changes."""
    try:
        return _wanted().stat().st_mtime_ns
    except OSError:
        return 0


def _wanted() -> Path:
    return folder() / "wanted"


def is_running() -> bool:
    """Whether an agent of this data folder runs on this machine."""
    try:
        descriptor = os.open(folder() / "lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


@contextlib.contextmanager
def held() -> Iterator[Callable[[], bool]]:
    """Be the agent; yield a function that tells whether this is still so: the data folder may be removed.

    RefusedError if there is an agent already.
    """
    paths.make_private(folder())
    descriptor = os.open(folder() / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RefusedError(
                "the agent is already running", code="agent-running", hint="see `yurt agent status`"
            ) from None
        with contextlib.suppress(OSError):  # of an earlier agent, whose process id may be another program's now
            (folder() / "agent.json").unlink()

        def still() -> bool:
            try:
                return os.fstat(descriptor).st_ino == os.stat(folder() / "lock").st_ino
            except OSError:
                return False

        yield still
    finally:
        os.close(descriptor)
