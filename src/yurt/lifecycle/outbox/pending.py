"""Submits the outbox of a context, if anything is in it. Cheap to import: usually nothing is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yurt.contexts.advance import Advanced
from yurt.model.progress import Watch, unwatched

if TYPE_CHECKING:
    from yurt.backends.base import Backend
    from yurt.store import Store


def send_pending(store: Store, context: str, backend: Backend, watch: Watch = unwatched) -> Advanced:
    """Cancel and submit runs as `yurt.lifecycle.outbox.outbox.send_waiting` does, which is imported for that."""
    if not store.outbox(context) and not store.cancels(context):
        return Advanced()
    from yurt.lifecycle.outbox.outbox import send_waiting

    return send_waiting(store, context, backend, watch)
