"""Sweeps that another machine submits: updates which of their tasks it has submitted."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from yurt.errors import YurtError
from yurt.model import sent, tasks
from yurt.model.run import Status
from yurt.model.state import CANCELLED
from yurt.store import Store

if TYPE_CHECKING:
    from yurt.backends.base import Files


def unsent_cancelled(sets: int, whole: Status, rows: Mapping[int, Status], now: float) -> dict[int, Status]:
    """Return the tasks of a cancelled sweep that will never be submitted."""
    out = {*rows, *tasks.numbers(whole.submitted_tasks)}
    never = Status(state="cancelled", reason="cancelled before it started", ended=now)
    return {number: never for number in range(sets) if number not in out}


def refresh(store: Store, context: str, files: Files) -> None:
    """Record which further tasks another machine submitted, in one request. Failures are not raised."""
    entries = {entry.run.folder: entry for entry in store.sent_elsewhere(context)}
    if not entries:
        return
    try:
        submitted = files.submitted_groups(list(entries))
    except YurtError:  # the status query that follows reports it
        return
    for folder, text in submitted.items():
        run = entries[folder].run
        groups = sent.read(text)
        _changed, whole = store.change_tasks(
            run.id,
            whole=lambda status, groups=groups: sent.noted(status, groups),  # type: ignore[misc]
        )
        if CANCELLED in text.split():
            never = unsent_cancelled(run.tasks, whole, store.tasks(run.id), time.time())
            store.change_tasks(run.id, never, lambda number, _status, never=never: never[number])  # type: ignore[misc]
