"""Copies the function calls of one sweep to another sweep."""

from __future__ import annotations

from collections.abc import Sequence

from yurt.contexts import connect
from yurt.errors import RefusedError
from yurt.model import calls, layout
from yurt.model.run import Run
from yurt.store import Store
from yurt.store import calls as kept


def hand_on(store: Store, old: Run, tasks: Sequence[int] | None, new: str) -> None:
    """Save the calls of an old sweep, or of some of its tasks, for the sweep `new`. Fetch them if needed."""
    content = kept.of(store, old.id)
    if content is None:
        content = connect.named_backend(old.context).files.read(old.folder, layout.CALLS)
        if content is None:
            raise RefusedError(
                f"the calls of sweep {old.id} are neither on {old.context} nor on this machine",
                code="calls-missing",
                hint="submit the calls again from your program",
            )
    if tasks is not None:
        content = calls.pack(calls.picked(calls.unpack(content), tasks))
    kept.keep(store, new, content)
