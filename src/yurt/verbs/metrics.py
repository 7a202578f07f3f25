"""What a run logged with yurt.log, as far as this machine has it."""

from __future__ import annotations

import os
from typing import Any

import msgspec

from yurt.model.run import Run

TAIL = 1 << 18
"""Bytes at the end of the file in which the last value of every metric is looked for."""


def last(run: Run) -> dict[str, Any]:
    """The last value of each metric, and of the step; empty if nothing was logged, or it is only on the site."""
    if run.kind != "local":
        return {}
    try:
        with open(f"{run.folder}/metrics.jsonl", "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL))
            text = file.read()
    except OSError:
        return {}
    return of(text)


def of(text: bytes) -> dict[str, Any]:
    """The last value of each metric in lines of metrics.jsonl; what is no whole line is passed over."""
    found: dict[str, Any] = {}
    for line in text.split(b"\n"):
        try:
            row = msgspec.json.decode(line, type=dict[str, Any])
        except msgspec.MsgspecError:
            continue
        if "rank" not in row:
            found |= row
    found.pop("time", None)
    return found
