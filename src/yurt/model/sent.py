"""Which tasks of a sweep have gone out: what its folder says of it, in lines "JOB START:OFFSET:TASKS". Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from yurt.model import tasks
from yurt.model.run import Status


def read(text: str) -> list[tuple[str, str]]:
    """The job and the group of each line; one that is not whole is left out."""
    words = (line.split() for line in text.splitlines())
    return [(each[0], each[1]) for each in words if len(each) == 2 and each[1].count(":") == 2]


def noted(status: Status, sent: Iterable[tuple[str, str]]) -> Status:
    """The status of a sweep of which these groups have gone out, too."""
    pairs = list(sent)
    out = {number for _job, group in pairs for number in tasks.of_group(group)}
    return msgspec.structs.replace(
        status,
        submitted_tasks=tasks.ranges(out.union(tasks.numbers(status.submitted_tasks))),
        offsets=sorted({*status.offsets, *(group.split(":")[1] for _job, group in pairs)}, key=int),
        job=",".join(dict.fromkeys([*filter(None, status.job.split(",")), *(job for job, _group in pairs)])),
    )
