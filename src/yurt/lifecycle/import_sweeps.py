"""Makes index entries from the folders of sweeps and their tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from yurt.lifecycle.refresh.other_machines import unsent_cancelled
from yurt.model import layout, sent, tasks
from yurt.model.files import Gathered
from yurt.model.run import Run, Status
from yurt.model.state import ATTEMPTS, read_ending, read_metrics
from yurt.model.verdict import adopt, adopt_sweep, read_sweep_verdict, read_verdict

if TYPE_CHECKING:
    from yurt.backends.base import Files

TASKS = 20_000
"""How many tasks one request may read."""


def tasks_of(files: Files, sweeps: Mapping[str, int]) -> dict[str, dict[int, Gathered]]:
    """Return the contents of started tasks' folders, by sweep folder and task number, in few requests.

    `sweeps` maps each sweep folder to its number of tasks.
    """
    found: dict[str, dict[int, Gathered]] = {}
    for batch in _batches(sweeps):
        found |= files.gather_tasks(batch)
    return found


def _batches(sweeps: Mapping[str, int]) -> Iterator[list[str]]:
    batch: list[str] = []
    for folder in sweeps:
        if batch and sum(sweeps[each] for each in batch) + sweeps[folder] > TASKS:
            yield batch
            batch = []
        batch.append(folder)
    if batch:
        yield batch


def statuses(
    run: Run, gathered: Gathered, begun: dict[int, Gathered], attempts: int, now: float
) -> tuple[Status, dict[int, Status]]:
    """Return the status of a sweep and of its tasks according to their folders; the next refresh updates them."""
    submitted = gathered.made or run.created
    groups = sent.read(gathered.text(layout.SENT))
    others = attempts >= ATTEMPTS
    whole = sent.noted(Status(state="queued", submitted=submitted, attempts=1, other_machine=others), groups)
    rows = {
        number: _task(each, Status(state="queued", submitted=submitted, attempts=attempts), now)
        for number, each in begun.items()
        if number < run.tasks
    }
    whole = msgspec.structs.replace(whole, submitted_tasks=tasks.ranges({*rows, *tasks.numbers(whole.submitted_tasks)}))
    verdict = read_sweep_verdict(gathered.files.get(layout.STATUS, b""))
    if verdict is not None:
        whole = adopt_sweep(whole, verdict)
        for number, each in verdict.each(run.tasks):
            if number not in rows or not rows[number].final:
                rows[number] = adopt(Status(attempts=attempts), each, None, now)
        for number, native in verdict.native_of_each(run.tasks):
            if number in rows:
                rows[number] = msgspec.structs.replace(rows[number], native=native)
    if layout.CANCEL in gathered.files:
        rows |= unsent_cancelled(run.tasks, whole, rows, now)
        whole = msgspec.structs.replace(whole, reason=whole.reason or "cancelled")
    return whole, rows


def _task(gathered: Gathered, before: Status, now: float) -> Status:
    starts = gathered.starts
    made_by = (gathered.text(f"{layout.START}{starts}") or gathered.text(layout.WINNER)).split(".")
    status = msgspec.structs.replace(
        before,
        state="running" if starts else "queued",
        restarts=max(starts - 1, 0),
        job=made_by[1] if len(made_by) > 1 else "",
    )
    verdict = read_verdict(gathered.files.get(layout.STATUS, b""))
    after = adopt(status, verdict, read_ending(gathered.files.get(layout.EXIT, b"")), now)
    logged = read_metrics(gathered.files.get(layout.METRICS, b"")) if after.final else {}
    return msgspec.structs.replace(after, metrics=logged)
