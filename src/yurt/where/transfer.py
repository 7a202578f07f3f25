"""How long a run must wait on a context for its code and its environment, as far as this machine can tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from yurt.backends.kinds import kind_of
from yurt.model import layout
from yurt.model.context import Context
from yurt.store import Store

if TYPE_CHECKING:
    from yurt.model.run import Run

SPEED = 5e6
"""Bytes per second that an upload is assumed to take."""

BUILD = 120.0
"""Seconds that a new environment is assumed to take."""

NEWEST = 50
"""How many runs of a context are searched for an environment of the project."""


class Transfer(msgspec.Struct, frozen=True, kw_only=True):
    """What must reach a context before a run can start there."""

    seconds: float = 0.0
    """How long it takes, by assumption."""
    what: list[str] = []
    """Its parts in words."""


def transfer(store: Store, context: Context, label: str, *, builds: bool) -> Transfer:
    """Return what a context lacks for a run of a project. `builds`: yurt builds an environment for the run."""
    if kind_of(context.type).here:
        return Transfer()
    seconds, what = 0.0, list[str]()
    if not store.code_at(context.name, label):
        size = _code_size(store, label)
        seconds += size / SPEED
        what.append(f"{size / 1e6:.0f} MB of code at {SPEED / 1e6:.0f} MB/s")
    if builds and not any(run.env is not None for run in _runs(store, context.name, label)):
        seconds += BUILD
        what.append(f"{BUILD / 60:.0f} min to build an environment")
    return Transfer(seconds=seconds, what=what)


def _code_size(store: Store, label: str) -> int:
    """Return the size of the newest snapshot of a project; 0 if it has never run."""
    for entry in store.newest(1, where={"project": [label]}):
        return entry.run.code.size
    return 0


def _runs(store: Store, context: str, label: str) -> list[Run]:
    found = store.newest(NEWEST, where={"context": [context]})
    return [entry.run for entry in found if layout.same_folder(entry.run.project, label)]
