"""The last metrics of a run that is running, with one small request that does not search its folders."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec

from yurt.backends.kinds import kind_of
from yurt.contexts import connect
from yurt.errors import YurtError
from yurt.lifecycle.files import metrics
from yurt.lifecycle.files.metrics import TAIL, Metric
from yurt.model import layout
from yurt.model.growth import Growing, Known
from yurt.store import Entry, Store
from yurt.tracking.follow import Unit, look, units
from yurt.tracking.followed import Followed


def last(store: Store, entry: Entry, *, patience: float) -> list[Metric]:
    """Return the last value of each metric of a running run, or of a task: as far as it came within `patience` seconds.

    Never raises an error of the site: then the copy on this machine counts.
    """
    if kind_of(entry.run.context_type).here:
        return metrics.last(store, entry)
    found = units(store, [entry])
    if len(found) != 1:
        return []
    unit = _Shallow(**msgspec.structs.asdict(found[0]))
    thread = threading.Thread(target=_bring, args=(unit,), daemon=True)
    thread.start()
    thread.join(patience)
    copy = Followed(unit.run).copies().get(f"{unit.prefix}{layout.METRICS}")
    if copy is None:
        return []
    with copy.file.open("rb") as file:
        file.seek(max(0, copy.size - TAIL))
        return metrics.of(file.read())


def samples(entry: Entry) -> bytes:
    """Return the samples of what a run uses: of its folder on this machine, or those that came with `last`."""
    run = entry.run
    prefix = "" if run.task is None else f"{layout.TASKS}/{run.task}/"
    if kind_of(run.context_type).here:
        file = Path(run.folder, layout.USAGE)
    else:
        copy = Followed(run.sweep or run.id).copies().get(f"{prefix}{layout.USAGE}")
        if copy is None:
            return b""
        file = copy.file
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _bring(unit: Unit) -> None:
    try:
        look(connect.responding_backend(unit.context).files, unit.context, [unit], ["metrics", "usage"], deep=False)
    except YurtError:
        return


class _Shallow(Unit, frozen=True, kw_only=True):
    """A run of which only metrics.jsonl and the samples of what it uses are wanted."""

    def growing(self, followed: Followed, *, deep: bool) -> Growing:
        whole = super().growing(followed, deep=deep)
        have = {each.path: each for each in whole.known}
        known = [have.get(name) or Known(name, 0) for name in (layout.METRICS, layout.USAGE)]
        return msgspec.structs.replace(whole, known=known, deep=False, place="")
