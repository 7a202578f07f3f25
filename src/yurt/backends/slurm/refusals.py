"""Classifies errors of sbatch: Slurm does not respond, a job limit is reached, or the job is rejected. Pure."""

from __future__ import annotations

import re

from yurt.errors import RefusedError, UnreachableError, YurtError

NO_RESPONSE = re.compile(
    r"unable to contact slurm controller|socket timed out|connection refused|connection timed out|"
    r"zero bytes were transmitted|communication connection failure|no route to host|"
    r"unable to connect|transport endpoint|slurm_receive_msg|invalid authentication credential|"
    r"unexpected message received|controller not in active mode|terminated|killed",
    re.IGNORECASE,
)
"""The controller did not respond, or not in time; it may have accepted the job anyway."""

JOB_LIMIT = re.compile(r"SubmitJob|submit limit|too many jobs", re.IGNORECASE)


NOT_NOW = re.compile(
    r"not (usable|available) now|temporarily|try again|partition not available|required node not available|"
    r"no space left|writing script/environment to file",
    re.IGNORECASE,
)
"""Rejections that Slurm itself calls temporary, and a full disk of its controller."""


def classify(name: str, errors: str) -> YurtError:
    """Return the error for sbatch's standard error on the site `name`."""
    lines = [re.sub(r"^sbatch: (error: )?", "", line).strip() for line in errors.splitlines() if line.strip()]
    # The last line is the same for every limit; other lines, if any, name the limit.
    reason = "; ".join(line for line in lines if not line.startswith("Batch job submission failed"))
    reason = reason or "; ".join(lines)
    if NO_RESPONSE.search(errors) or not errors.strip():
        return not_responding(name, errors)
    if JOB_LIMIT.search(reason):
        return RefusedError(
            f"{name}: you have reached your job limit",
            code="submit-limit",
            hint="the run is saved; after a job finishes, submit it with `yurt agent once`",
        )
    last = lines[-1].removeprefix("Batch job submission failed: ") if lines else "no reason given"
    reason = reason if len(lines) > 1 else last
    message = f"{name}: Slurm rejected the job: {reason}"
    if NOT_NOW.search(reason):
        return RefusedError(message, code="scheduler-busy", hint="run the command again later")
    return RefusedError(message, code="job-refused")


def not_responding(name: str, errors: str) -> UnreachableError:
    lines = errors.strip().splitlines()
    return UnreachableError(
        f"{name}: Slurm does not respond" + (f": {lines[-1]}" if lines else ""),
        code="slurm-not-responding",
        hint="the controller may be down; run the command again later",
    )


def unconfirmed(name: str, errors: str) -> UnreachableError:
    """Return the error for an sbatch that failed, but may have submitted the job."""
    lines = errors.strip().splitlines()
    if not lines or NO_RESPONSE.search(errors):
        return not_responding(name, errors)
    return UnreachableError(
        f"{name}: it is not known whether Slurm accepted the job: {lines[-1]}",
        code="slurm-not-responding",
        hint="the next yurt command finds out; it is safe to retry",
    )
