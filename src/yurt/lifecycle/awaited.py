"""The runs that another run waits for, for `why` and `show`."""

from __future__ import annotations

from yurt.model.pending import Awaited
from yurt.model.run import Run
from yurt.store import Store


def awaited(store: Store, run: Run) -> list[Awaited]:
    """Return the runs that a run depends on and that have not completed."""
    found = [(after, store.get(after.run)) for after in run.after]
    every = [
        Awaited(run=after.run, state=entry.status.state if entry is not None else None, ended=after.ended)
        for after, entry in found
    ]
    return [each for each in every if each.state != "completed"]
