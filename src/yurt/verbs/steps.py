"""The steps that submit saved runs and move races on, in order; passed to every refresh of a verb."""

from __future__ import annotations

from yurt.lifecycle.advance import Steps
from yurt.lifecycle.env.tend import tend
from yurt.lifecycle.outbox.outbox import send_waiting
from yurt.store import Store


def _races(store: Store) -> list[str]:
    """Move races on; without one, their code is not even imported."""
    if not store.open_races():
        return []
    from yurt.race.tend import tend

    return tend(store)


STEPS = Steps((send_waiting, tend), (_races,))
