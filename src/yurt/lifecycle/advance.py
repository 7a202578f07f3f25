"""advance(): whatever waits on this machine moves on, as far as its context allows. Any verb may call it, at any time.

It runs the steps it is handed: rooms above this one have steps of their own, which the verbs hand down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from yurt.errors import YurtError
from yurt.model.progress import Watch, unwatched
from yurt.store import Store

if TYPE_CHECKING:
    from yurt.backends.base import Backend


class Advanced(msgspec.Struct, frozen=True):
    """What moved: runs that went out, runs that were refused, and what stopped the rest."""

    submitted: list[str] = []
    refused: dict[str, YurtError] = {}
    stopped: YurtError | None = None


Step = Callable[[Store, str, "Backend", Watch], Advanced]
"""Moves something on, on one context. Safe to repeat, and to kill at any point."""


def advance(
    store: Store, context: str, backend: Backend, steps: Sequence[Step], *, watch: Watch = unwatched
) -> Advanced:
    """Run the steps in order. One that the context stops does not keep the others from their turn."""
    submitted: list[str] = []
    refused: dict[str, YurtError] = {}
    stopped: YurtError | None = None
    for step in steps:
        done = step(store, context, backend, watch)
        submitted += done.submitted
        refused |= done.refused
        stopped = stopped or done.stopped
    return Advanced(submitted, refused, stopped)
