"""The calls of functions that a sweep makes, for another sweep."""

from __future__ import annotations

from collections.abc import Sequence

from yurt.errors import RefusedError
from yurt.model import calls, layout
from yurt.model.run import Run
from yurt.sites import connect
from yurt.store import Store
from yurt.store import calls as kept


def hand_on(store: Store, old: Run, tasks: Sequence[int] | None, new: str) -> None:
    """Give the sweep `new` the calls of an old one, or those of some tasks. They are here, or on the site."""
    content = kept.of(store, old.id)
    if content is None:
        content = connect.named_backend(old.context).files.read(old.folder, layout.CALLS)
        if content is None:
            raise RefusedError(
                f"the calls of {old.id} are neither on {old.context} any more nor here",
                code="calls-missing",
                hint="submit them anew",
            )
    if tasks is not None:
        content = calls.pack(calls.picked(calls.unpack(content), tasks))
    kept.keep(store, new, content)
