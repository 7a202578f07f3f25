"""The file `sent` of a sweep: which tasks were submitted, in lines "JOB START:OFFSET:TASKS". Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from yurt.model import tasks
from yurt.model.run import Status


def read(text: str) -> list[tuple[str, str]]:
    """Return the job and the group of each line; incomplete lines are skipped."""
    rows = (line.split() for line in text.splitlines())
    return [(each[0], each[1]) for each in rows if len(each) == 2 and _is_group(each[1])]


def _is_group(text: str) -> bool:
    start, offset, numbers = (*text.split(":", 2), "", "")[:3]
    return start.isdigit() and offset.isdigit() and text.isascii() and not numbers.strip("0123456789,-%:")


def noted(status: Status, sent: Iterable[tuple[str, str]]) -> Status:
    """Return the status of a sweep after these groups were also submitted."""
    pairs = list(sent)
    submitted = {number for _job, group in pairs for number in tasks.of_group(group)}
    return msgspec.structs.replace(
        status,
        submitted_tasks=tasks.ranges(submitted.union(tasks.numbers(status.submitted_tasks))),
        offsets=sorted({*status.offsets, *(group.split(":")[1] for _job, group in pairs)}, key=int),
        job=",".join(dict.fromkeys([*filter(None, status.job.split(",")), *(job for job, _group in pairs)])),
    )
