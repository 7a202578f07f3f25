"""What sbatch's complaints mean: Slurm is silent, there is no room now, or it will never be taken. Pure."""

from __future__ import annotations

import re

from yurt.errors import RefusedError, UnreachableError, YurtError

SILENT = re.compile(
    r"unable to contact slurm controller|socket timed out|connection refused|connection timed out|"
    r"zero bytes were transmitted|communication connection failure|no route to host|"
    r"unable to connect|transport endpoint|slurm_receive_msg|invalid authentication credential|"
    r"unexpected message received|controller not in active mode|terminated|killed",
    re.IGNORECASE,
)
"""The controller did not answer, or not in time: the job may be there all the same."""

NO_ROOM = re.compile(r"SubmitJob|submit limit|too many jobs", re.IGNORECASE)


def classify(name: str, words: str) -> YurtError:
    """The error for what sbatch said on a site."""
    lines = [re.sub(r"^sbatch: (error: )?", "", line).strip() for line in words.splitlines() if line.strip()]
    # The last line is the same for every limit; where there are others, they say which it was.
    said = "; ".join(line for line in lines if not line.startswith("Batch job submission failed")) or "; ".join(lines)
    if SILENT.search(words) or not words.strip():
        return silent(name, words)
    if NO_ROOM.search(said):
        return RefusedError(
            f"{name}: you have as many jobs there as you may have",
            code="submit-limit",
            hint="it goes out when there is room",
        )
    last = lines[-1].removeprefix("Batch job submission failed: ") if lines else "no reason given"
    return RefusedError(f"{name}: Slurm refused the job: {said if len(lines) > 1 else last}", code="job-refused")


def silent(name: str, words: str) -> UnreachableError:
    lines = words.strip().splitlines()
    return UnreachableError(
        f"{name}: Slurm does not answer there" + (f": {lines[-1]}" if lines else ""),
        code="slurm-not-responding",
        hint="the controller may be down for a moment; repeat the command",
    )
