"""Progress events of long operations."""

from __future__ import annotations

from collections.abc import Callable

import msgspec


class Event(msgspec.Struct, frozen=True):
    """A step is in progress. `done` of `total` steps are complete; total 0 means unknown."""

    text: str
    done: int = 0
    total: int = 0


Watch = Callable[[Event], None]


def unwatched(_event: Event) -> None:
    """Ignore the event: the watcher of an operation without an observer."""
