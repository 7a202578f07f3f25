"""Identifies processes of this machine. Standard library only: the process of a run imports it."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal  # the module signal, which makes enums of numbers, takes longer to import than all else


def born(pid: int) -> int | None:
    """Return a number for the start time of a process; None if it does not exist or is a zombie.

    Ticks since boot where there is /proc, otherwise the digits of the time that ps prints: as `born` in job.sh.
    """
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return None if fields[0] in "ZX" else int(fields[19])
    except (OSError, IndexError, ValueError):
        return None if os.path.isdir("/proc/self") else _born_by_ps(pid)


def _born_by_ps(pid: int) -> int | None:
    state, _, started = _output("ps", "-o", "stat=", "-o", "lstart=", "-p", str(pid)).strip().partition(" ")
    digits = "".join(filter(str.isdigit, started))
    return int(digits) if digits and state[0] not in "ZX" else None


def boot() -> str:
    """Return the id of the current boot; empty if the system has none."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return _output("sysctl", "-n", "kern.bootsessionuuid").strip()


def _output(*argv: str) -> str:
    """Return what a program prints, in English and UTC; empty if it fails."""
    import subprocess

    environment = {**os.environ, "LC_ALL": "C", "TZ": "UTC0"}
    try:
        done = subprocess.run(argv, capture_output=True, env=environment, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace") if done.returncode == 0 else ""


def restore_signals() -> None:
    """Undo what Python ignores, before a program is executed: it would inherit that."""
    for name in ("SIGPIPE", "SIGXFSZ"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
