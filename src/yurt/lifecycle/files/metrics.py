"""Metrics that a run logged with yurt.log, as far as this machine has them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from yurt.backends.kinds import kind_of
from yurt.model import layout, metric_rows
from yurt.store import Entry, Store

if TYPE_CHECKING:
    from yurt.backends.base import Files

TAIL = 1 << 18
"""Bytes at the end of the file that are searched for the last value of each metric."""


class Metric(msgspec.Struct, frozen=True):
    """Last value that a run logged under a name."""

    name: str
    value: Any
    step: Any = None


def last(store: Store, entry: Entry) -> list[Metric]:
    """Return the last value of each metric; empty if nothing was logged, or it is only on the site."""
    kept = store.kept(entry.run.id) if entry.status.final else None
    if kept is not None:
        return of(kept.metrics)
    if not kind_of(entry.run.context_type).here:
        return []
    try:
        with open(f"{entry.run.folder}/{layout.METRICS}", "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL))
            return of(file.read())
    except OSError:
        return []


def every(store: Store, entry: Entry, files: Files) -> list[dict[str, Any]]:
    """Return all rows a run has logged, from the local copy or else from its site. UnreachableError."""
    kept = store.kept(entry.run.id) if entry.status.final else None
    text = kept.metrics if kept is not None else b""
    if kept is None or len(text) < kept.metrics_size:
        text = files.read(entry.run.folder, layout.METRICS, longest_line=metric_rows.LONGEST) or text
    found = []
    for line in text.split(b"\n"):
        row = metric_rows.row(line)
        if row is not None:
            found.append(row)
    return found


def of(text: bytes) -> list[Metric]:
    """Return the last value of each name, in order of first appearance. Incomplete lines are skipped."""
    found: dict[str, Metric] = {}
    for line in text.split(b"\n"):
        row = metric_rows.row(line)
        if row is None:
            continue
        if "rank" in row:  # from another rank than the first: must not replace the values of the first
            continue
        for name, value in row.items():
            if name not in ("time", "step"):
                found[name] = Metric(name, value, row.get("step"))
    return list(found.values())
