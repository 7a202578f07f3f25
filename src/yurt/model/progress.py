"""What a long operation tells whoever watches it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec


class Event(msgspec.Struct, frozen=True):
    """A step is under way. `done` of `total` steps are behind; total 0 means nobody knows."""

    text: str
    done: int = 0
    total: int = 0


Watch = Callable[[Event], None]


def unwatched(_event: Event) -> None:
    """The watcher of an operation nobody watches."""
