"""Refreshes a context by the early answer of its site, without importing what makes queries.

Only for the usual case: nothing is due, and the site answers as before. Otherwise the caller makes its query, which is
then answered by the same early answer.
"""

from __future__ import annotations

import os
import time

import msgspec

from yurt.contexts import early_answer
from yurt.model.digest import checksum
from yurt.model.status_answer import RunFiles, has_folders, split_files
from yurt.store import Store


class Unchanged(msgspec.Struct, frozen=True):
    """A refresh that changed nothing."""

    notes: list[str]
    """Warnings about runs that are not tracked."""
    files: RunFiles | None = None
    """What the query has read in the folder of a running run."""


def unchanged(store: Store, context: str, running: str = "") -> Unchanged | None:
    """Record a refresh if the early answer shows that nothing has changed on a context. None: make the query.

    `running`: the folder of a run whose last metrics and usage the query reads, too.
    """
    if not early_answer.is_sent() or _is_due(store, context):
        return None
    refs, now = store.refs(context), time.time()
    if not refs or not all(ref.mark for ref in refs):
        return None
    found = early_answer.find(context, early_answer.basis_of_status(context, refs, running))
    if found is None:
        return None
    files, queue = split_files(found, asked=bool(running))
    mark = checksum(queue)
    if mark != store.answer(context) or has_folders(queue):
        return None
    from yurt.lifecycle.refresh import notify, track  # logs do without

    store.note_refresh(context, now, mark)
    notify.fire(store)
    return Unchanged(track.begin(store), files)


def _is_due(store: Store, context: str) -> bool:
    """Whether a refresh of a context would do more than query it."""
    return bool(
        store.open_races()
        or store.outbox(context)
        or store.cancels(context)
        or store.building(context)
        or store.to_mirror(context, time.time())
        or store.sent_elsewhere(context)
        or os.path.isdir(f"{os.path.dirname(store.file)}/calls")
    )
