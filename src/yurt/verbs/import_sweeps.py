"""What folders of sweeps and their tasks say, made into what the index holds of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from yurt.backends.job import gathered
from yurt.backends.job.gathered import Gathered
from yurt.backends.slurm.queries import read_metrics
from yurt.hosts import Host
from yurt.hosts.base import refusal
from yurt.model import layout, sent, standing, tasks
from yurt.model.run import Run, Status
from yurt.model.state import ATTEMPTS
from yurt.runs.refresh.other_machines import unsent_cancelled

TASKS = 20_000
"""Tasks that one trip asks for."""


def tasks_of(host: Host, sweeps: Mapping[str, int]) -> dict[str, dict[int, Gathered]]:
    """What there is of tasks that have begun, by their sweep's folder and number; in few trips.

    `sweeps` holds how many tasks each has.
    """
    found: dict[str, dict[int, Gathered]] = {}
    for batch in _batches(sweeps):
        lines = "".join(f"{folder}\n" for folder in batch)
        answer = host.run(gathered.tasks_gatherer(), stdin=lines.encode(), timeout=300)
        if answer.code:
            raise refusal(host.name, "its sweeps could not be read", answer.errors)
        there = gathered.read_tasks(answer.text)
        found |= {folder: there.get(folder, {}) for folder in batch}
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
    run: Run, said: Gathered, begun: dict[int, Gathered], attempts: int, now: float
) -> tuple[Status, dict[int, Status]]:
    """How a sweep and its tasks stood when their folders were read; a look tells the rest."""
    submitted = said.made or run.created
    groups = sent.read(said.text(layout.SENT))
    others = attempts >= ATTEMPTS
    whole = sent.noted(Status(state="queued", submitted=submitted, attempts=1, elsewhere=others), groups)
    rows = {
        number: _task(each, Status(state="queued", submitted=submitted, attempts=attempts), now)
        for number, each in begun.items()
        if number < run.sets
    }
    whole = msgspec.structs.replace(whole, out=tasks.ranges({*rows, *tasks.numbers(whole.out)}))
    verdict = standing.read_sweep(said.files.get(layout.STATUS, b""))
    if verdict is not None:
        whole = standing.adopt_sweep(whole, verdict)
        for number, each in verdict.each():
            if number < run.sets and (number not in rows or not rows[number].final):
                rows[number] = standing.adopt(Status(attempts=attempts), each, None, now)
    if layout.CANCEL in said.files:
        rows |= unsent_cancelled(run.sets, whole, rows, now)
        whole = msgspec.structs.replace(whole, reason=whole.reason or "cancelled")
    return whole, rows


def _task(said: Gathered, before: Status, now: float) -> Status:
    starts = said.starts
    made_by = (said.text(f"{layout.START}{starts}") or said.text(layout.WINNER)).split(".")
    status = msgspec.structs.replace(
        before,
        state="running" if starts else "queued",
        restarts=max(starts - 1, 0),
        job=made_by[1] if len(made_by) > 1 else "",
    )
    verdict = standing.read(said.files.get(layout.STATUS, b""))
    after = standing.adopt(status, verdict, gathered.ending(said), now)
    logged = read_metrics(said.files.get(layout.METRICS, b"")) if after.final else {}
    return msgspec.structs.replace(after, metrics=logged)
