"""Messages of sbatch, and what they mean for a run."""

from __future__ import annotations

import pytest

from yurt.backends.slurm.refusals import classify
from yurt.errors import RefusedError
from yurt.lifecycle.outbox.refused import TEMPORARY
from yurt.transport.base import refusal

FAILED = "sbatch: error: Batch job submission failed: "


@pytest.mark.parametrize(
    ("errors", "code"),
    [
        (f"{FAILED}Requested node configuration is not available", "job-refused"),
        (f"{FAILED}Invalid node name specified", "job-refused"),
        (f"sbatch: error: invalid partition specified: brief\n{FAILED}Invalid partition name specified", "job-refused"),
        (f"{FAILED}Invalid account or account/partition combination specified", "job-refused"),
        (f"{FAILED}Required partition not available (inactive or drain)", "scheduler-busy"),
        (f"{FAILED}Required node not available (down, drained or reserved)", "scheduler-busy"),
        (f"{FAILED}Requested reservation not usable now", "scheduler-busy"),
        (f"{FAILED}Resource temporarily unavailable", "scheduler-busy"),
        (f"{FAILED}I/O error writing script/environment to file", "scheduler-busy"),
        (
            f"{FAILED}Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
            "submit-limit",
        ),
        (f"{FAILED}Unable to contact slurm controller (connect failure)", "slurm-not-responding"),
        ("", "slurm-not-responding"),
    ],
)
def test_rejections(errors: str, code: str) -> None:
    error = classify("big", errors)
    assert error.code == code
    assert isinstance(error, RefusedError) == (code != "slurm-not-responding")
    assert (code in TEMPORARY) == (code in ("scheduler-busy", "submit-limit"))


@pytest.mark.parametrize(
    "errors",
    ["mkdir: cannot create directory 'x': No space left on device", "head: write error: Disk quota exceeded"],
)
def test_no_room_is_temporary(errors: str) -> None:
    """A disk without free inodes reports the same as a full one."""
    assert refusal("big", "cannot submit the run", errors).code in TEMPORARY
