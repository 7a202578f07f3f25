"""advance(): process everything pending for a context, such as saved runs. Any verb may call it at any time.

The steps are passed in: packages above this one have steps of their own, which the verbs pass down.
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
    """Result of the steps: submitted runs, rejected runs, the error that stopped the rest, and notes by run."""

    submitted: list[str] = []
    refused: dict[str, YurtError] = {}
    stopped: YurtError | None = None
    notes: dict[str, str] = {}
    large: list[str] = []
    """Runs that are not submitted because their code must be uploaded first, which takes long."""


Step = Callable[[Store, str, "Backend", Watch], Advanced]
"""Processes pending work of one context. Safe to repeat, and to kill at any point."""


def advance(
    store: Store, context: str, backend: Backend, steps: Sequence[Step], *, watch: Watch = unwatched
) -> Advanced:
    """Run the steps in order. A step that the context stops does not prevent the later ones."""
    submitted: list[str] = []
    refused: dict[str, YurtError] = {}
    stopped: YurtError | None = None
    notes: dict[str, str] = {}
    large: list[str] = []
    for step in steps:
        done = step(store, context, backend, watch)
        submitted += done.submitted
        refused |= done.refused
        stopped = stopped or done.stopped
        notes |= done.notes
        large += done.large
    return Advanced(submitted, refused, stopped, notes, large)


def both(first: Advanced, second: Advanced) -> Advanced:
    """Return the results of two passes as one; the second decides what stopped it and what is left."""
    return Advanced(
        [*first.submitted, *second.submitted],
        {**first.refused, **second.refused},
        second.stopped,
        {**first.notes, **second.notes},
        second.large,
    )
