"""The processes of a dev node's sessions: finds them by a variable of their environment, and ends them.

A session that came through the node's own sshd is in no control group of the job, so nothing else would end it.
"""

import os
import signal
import time
from typing import Dict, List, Mapping

MARK = "YURT_DEV_SESSION"
"""In the environment of all processes of a session: its run, its job and the folder of the dev node."""

SERVER = "YURT_DEV_SSHD"
"""In the environment of the shell that waits for the sshd of one connection: the folder of the dev node. sshd itself
overwrites its environment with its title."""

PROC = "/proc"

GRACE, HURRY = 3.0, 1.0
"""Seconds in which processes of sessions may end by themselves, and those after a signal: a cancelled job may have only
a few, which its last backup needs."""

DRAIN = 1.0
"""Seconds for an sshd to pass on the last output."""

STUBBORN = 3.0
"""Seconds in which killed processes must be gone; one that waits for a disk stays."""

SESSION, SSHD, OTHER = "session", "sshd", "other"


def mark(environment: Mapping[str, str], folder: str) -> str:
    """Return the value of the mark. A job that a session submits inherits it, but has a run or a job of its own."""
    return " ".join([environment.get("YURT_RUN_ID", ""), environment.get("SLURM_JOB_ID", ""), folder])


def find(folder: str, proc: str = PROC) -> Dict[int, str]:
    """Return the processes of sessions of the dev node with this folder, and those of sshd that serve them.

    A descendant of one is one, too, unless it is a run or a job of its own.
    """
    parents: Dict[int, int] = {}
    kinds: Dict[int, str] = {}
    for name in _names(proc):
        try:
            with open(os.path.join(proc, name, "stat"), "rb") as stream:
                state, parent = stream.read().rpartition(b")")[2].split()[:2]
        except (OSError, ValueError):
            continue  # it has just ended
        if state not in b"ZX":
            parents[int(name)] = int(parent)
            kinds[int(name)] = _kind(os.path.join(proc, name, "environ"), folder)
    for pid in parents:
        above = [pid]
        while not kinds[above[-1]] and parents[above[-1]] in kinds and parents[above[-1]] not in above:
            above.append(parents[above[-1]])
        for each in above:
            kinds[each] = kinds[above[-1]] or OTHER
    return {pid: kind for pid, kind in kinds.items() if kind != OTHER and pid != os.getpid()}


def working_in(folder: str, proc: str = PROC) -> List[int]:
    """Return the processes whose working directory is this folder or below it."""
    found = []
    for name in _names(proc):
        try:
            where = os.readlink(os.path.join(proc, name, "cwd"))
        except OSError:
            continue
        if where == folder or where.startswith(folder + "/"):
            found.append(int(name))
    return found


def _names(proc: str) -> List[str]:
    try:
        return [each for each in os.listdir(proc) if each.isdigit()]
    except OSError:
        return []  # no /proc: nothing can be found


def _kind(path: str, folder: str) -> str:
    """Return what a process says of itself; empty if its parent decides."""
    try:
        with open(path, "rb") as stream:
            words = os.fsdecode(stream.read()).split("\0")
    except OSError:
        return ""  # of another user, or it has just ended
    variables = dict(word.split("=", 1) for word in words if "=" in word)
    if MARK in variables:
        return SESSION if variables[MARK] == mark(variables, folder) else OTHER
    return SSHD if variables.get(SERVER) == folder else ""


def end(folder: str, grace: float) -> None:
    """End the processes in all sessions of a dev node."""
    _signal(folder, [SESSION], signal.SIGHUP)  # interactive shells ignore TERM
    _signal(folder, [SESSION], signal.SIGTERM)
    _wait(folder, [SESSION], grace)
    _kill(folder, [SESSION])


def close(folder: str) -> None:
    """End all connections of sessions, and what is left of the sessions."""
    _wait(folder, [SESSION, SSHD], DRAIN)
    _kill(folder, [SESSION, SSHD])


def _kill(folder: str, kinds: List[str]) -> None:
    deadline = time.monotonic() + STUBBORN
    while _signal(folder, kinds, signal.SIGKILL) and time.monotonic() < deadline:
        time.sleep(0.05)  # again: one may have just started another


def _signal(folder: str, kinds: List[str], number: int) -> int:
    """Signal the processes of these kinds; return how many there were."""
    sent = 0
    for pid, kind in find(folder).items():
        if kind in kinds:
            try:
                os.kill(pid, number)
                sent += 1
            except OSError:
                pass  # it has just ended
    return sent


def _wait(folder: str, kinds: List[str], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and any(kind in kinds for kind in find(folder).values()):
        time.sleep(0.05)
