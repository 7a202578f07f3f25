"""Sweeps that another machine sends, of which some tasks have yet to go out: what has gone out since."""

from __future__ import annotations

import time
from collections.abc import Mapping

from yurt.backends.shell import scripts
from yurt.errors import YurtError
from yurt.hosts import Host
from yurt.model import sent, tasks
from yurt.model.run import Status
from yurt.model.state import CANCELLED
from yurt.store import Store


def unsent_cancelled(sets: int, whole: Status, rows: Mapping[int, Status], now: float) -> dict[int, Status]:
    """Tasks of a cancelled sweep that will never go out."""
    out = {*rows, *tasks.numbers(whole.out)}
    never = Status(state="cancelled", reason="cancelled before it started", ended=now)
    return {number: never for number in range(sets) if number not in out}


def refresh(store: Store, context: str, host: Host) -> None:
    """Of sweeps that another machine sends, and has not sent all of: what has gone out since. Softly, in one trip."""
    entries = {entry.run.folder: entry for entry in store.sent_elsewhere(context)}
    if not entries:
        return
    try:
        answer = host.run(scripts.text("sent.sh"), *entries)
    except YurtError:  # the look that follows says so
        return
    for block in f"\n{answer.text}".split("\n= ")[1:]:
        folder, _, text = block.partition("\n")
        run = entries[folder].run
        groups = sent.read(text)
        _changed, whole = store.change_tasks(
            run.id,
            whole=lambda status, groups=groups: sent.noted(status, groups),  # type: ignore[misc]
        )
        if CANCELLED in text.split():
            never = unsent_cancelled(run.sets, whole, store.tasks(run.id), time.time())
            store.change_tasks(run.id, never, lambda number, _status, never=never: never[number])  # type: ignore[misc]
