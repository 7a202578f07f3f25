"""Names of runs in legends: the id, the user's name, and the parameters in which the runs differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from yurt.model import params
from yurt.store import Entry


def labels(entries: Sequence[Entry]) -> dict[str, str]:
    """Return a name for each run or task, by id."""
    vary = varying([entry.run.params for entry in entries])
    found = {}
    for entry in entries:
        run = entry.run
        given = [f"{key}={params.summary(run.params[key])}" for key in vary if key in run.params]
        found[run.id] = " ".join([run.id, *([run.name] if run.name else []), *given])
    return found


def varying(sets: Sequence[dict[str, Any]]) -> list[str]:
    """Return the parameters that are not the same in all runs, by first occurrence."""
    keys = dict.fromkeys(key for each in sets for key in each)
    return [key for key in keys if len({_written(each, key) for each in sets}) > 1]


def _written(values: dict[str, Any], key: str) -> bytes:
    return msgspec.json.encode(values[key]) if key in values else b""
