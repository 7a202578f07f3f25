"""Records what was expected of a run when it was submitted, if its site was asked a moment before."""

from __future__ import annotations

from yurt.config import facts as recorded
from yurt.model.context import Context
from yurt.model.facts import partition_of_job
from yurt.model.run import Plan
from yurt.model.where import Estimate
from yurt.store import Entry, Store
from yurt.where import cache
from yurt.where.wanted import of_run


def note(store: Store, context: Context, plan: Plan, entry: Entry) -> None:
    """Record the expected start of a run that was just submitted, if it is known; answers before it are invalid now.

    A run that waits for something other than the queue gets no estimate.
    """
    wanted, facts = of_run(plan, context), recorded.load(context)
    partition = partition_of_job(wanted.resources.partition, facts)
    found = cache.take(context.name, recorded.address_of(wanted.context), wanted.key, partition)
    run, status = entry.run, entry.status
    held = "hold" in wanted.options or status.building or run.home_sync or run.after or run.race
    if found is None or held or status.submitted is None:
        return
    starts, row = found
    left = row.later(max(0.0, status.submitted - starts.at))
    made = Estimate(
        run=run.id,
        partition=partition,
        at=status.submitted,
        seconds=left.seconds or 0.0,
        low=left.low or 0.0,
        high=left.high or 0.0,
        clock=starts.clock,
    )
    store.note_estimate(context.name, made)
