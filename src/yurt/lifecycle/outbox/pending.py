"""Submits the outbox of a context, if anything is in it. Cheap to import: usually nothing is."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from yurt.contexts.advance import Advanced
from yurt.errors import YurtError
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


def cancel_saved(store: Store | None, context: str) -> None:
    """Send the saved cancellations of a context, whose jobs are running, before a verb has it do something else."""
    cancels = store.cancels(context) if store is not None else []
    if store is not None and cancels:
        from yurt.contexts import connect
        from yurt.lifecycle.outbox.cancellations import tell_cancel

        with suppress(YurtError):  # a later refresh sends them
            tell_cancel(store, cancels, connect.responding_backend(context).runs)
