"""What the index says about the waits of earlier runs on a context."""

from __future__ import annotations

import msgspec

from yurt.model.facts import Facts, partition_of_job
from yurt.model.where import Estimate, TrackRecord
from yurt.store import Entry, Store
from yurt.where.calibration import Pair, real_wait, span

NEWEST = 200
"""How many runs of a context count, the newest."""

ENOUGH = 10
"""With so many pairs of its own, a partition does not use those of others."""


class History(msgspec.Struct, frozen=True, kw_only=True):
    """The waits of earlier runs of a context, by partition."""

    pairs: dict[str, list[Pair]] = {}
    waits: dict[str, list[float]] = {}

    def span(self, partition: str, expected: float) -> tuple[float, float]:
        """Return the range of an expected wait in a partition."""
        own, every = self.pairs.get(partition, []), [pair for each in self.pairs.values() for pair in each]
        return span(expected, own if len(own) >= ENOUGH else every, self.waits.get(partition, []))

    def record(self, context: str) -> TrackRecord:
        pairs = [pair for each in self.pairs.values() for pair in each]
        return TrackRecord(
            context=context,
            within=sum(pair.within for pair in pairs),
            runs=len(pairs),
            waits=sum(map(len, self.waits.values())),
        )


def history(store: Store, context: str, facts: Facts | None = None) -> History:
    """Return the waits of a context."""
    pairs: dict[str, list[Pair]] = {}
    waits: dict[str, list[float]] = {}
    delayed = store.delayed_runs(context)
    made = {each.run: each for each in store.estimates(context, NEWEST)}
    for entry in store.several(list(made)):
        if (pair := _pair(store, entry, made[entry.run.id])) is not None:
            pairs.setdefault(made[entry.run.id].partition, []).append(pair)
    for entry in store.newest(NEWEST, where={"context": [context]}):
        run = entry.run
        if run.id in made or run.id in delayed or run.tasks or run.env is not None:  # it may have waited for a build
            continue
        if (wait := real_wait(run, entry.status)) is not None:
            waits.setdefault(partition_of_job(run.resources.partition, facts), []).append(wait)
    return History(pairs=pairs, waits=waits)


def _pair(store: Store, entry: Entry, made: Estimate) -> Pair | None:
    run, status = entry.run, entry.status
    if run.tasks:  # its first task
        started = [each.started for each in store.tasks(run.id).values() if each.started is not None]
        status = msgspec.structs.replace(status, started=min(started, default=None))
    real = real_wait(run, status, made.clock)
    if real is None and status.state == "queued" and status.submitted is not None and not status.restarts:
        waited = (store.refreshed_at(run.context) or 0.0) - status.submitted
        real = waited if waited > made.high else None  # it is late already
    return None if real is None else Pair(made.seconds, made.low, made.high, real)
