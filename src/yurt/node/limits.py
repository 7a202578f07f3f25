"""How much time is left: asked of Slurm, or counted from the limit that the laptop gave."""

import os
import re
import subprocess
from typing import Optional

TIME = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)\Z")
PATIENCE = 20
ENDED = {
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED"),
    *("REVOKED", "TIMEOUT"),
}


class Unknown(Exception):
    """Slurm does not answer."""


def seconds(text: str) -> Optional[float]:
    """Return the seconds in a time of Slurm, [DAYS-][HOURS:]MINUTES:SECONDS; None for no limit, or no number."""
    found = TIME.match(text.strip())
    if not found:
        return None
    days, hours, minutes, rest = (int(each or 0) for each in found.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + rest)


def time_left(job: str) -> Optional[float]:
    """Return the seconds that a job has left; None if it has no limit. Raises Unknown."""
    text = _squeue("-j", job, "-o", "%L").strip()
    if not text or text in ("INVALID", "NOT_SET"):
        raise Unknown("squeue says %s" % (text or "nothing"))
    return seconds(text)


def has_ended(job: str) -> bool:
    """Return whether Slurm says that a job has ended; False also if Slurm cannot say."""
    try:
        states = _squeue("-t", "all", "-j", job, "-o", "%T").split()
    except Unknown as error:
        return "Invalid job id" in str(error)
    return bool(states) and all(each in ENDED for each in states)


def _squeue(*words: str) -> str:
    try:
        done = subprocess.run(
            ["squeue", "-h", *words],
            env={name: value for name, value in os.environ.items() if not name.startswith("SQUEUE_")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unknown(str(error)) from None
    if done.returncode:
        raise Unknown(done.stderr.decode("utf-8", "replace"))
    return done.stdout.decode("utf-8", "replace")
