"""Reads points of metrics from the copies of the files of a run, each file from where the last reading ended."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from yurt.model import event_file, metric_rows
from yurt.tracking.mlflow.names import name_of

LARGEST = 2**63 - 1
FLOAT_MAX = 1.7976931348623157e308
"""MLflow's databases store infinite values as this one."""


class Source(msgspec.Struct, frozen=True):
    """A file with points."""

    path: str
    """Its name in the journal."""
    file: Path
    size: int
    generation: int
    metric: str = ""
    """The metric, if the file is one of MLflow; else the file is metrics.jsonl, or an event file."""
    events: str | None = None
    """Of an event file: what is put before its tags."""


class Position(msgspec.Struct, frozen=True):
    """Up to where a file was read."""

    generation: int = 0
    offset: int = 0
    counts: dict[str, int] = {}
    """The number of points without a step, by metric."""


class Point(msgspec.Struct, frozen=True, array_like=True):
    """A value of a metric as MLflow stores it: the time in milliseconds."""

    metric: str
    value: float
    time: int
    step: int

    @property
    def stored(self) -> tuple[int, int, float | None]:
        """What identifies the point in the history of its metric."""
        return self.time, self.step, stored_value(self.value)


def stored_value(value: float) -> float | None:
    """Return a value as it is read back from MLflow, whatever kind of store that has; None if it is not a number."""
    return None if math.isnan(value) else max(-FLOAT_MAX, min(FLOAT_MAX, value))


def read(source: Source, since: Position | None) -> Iterator[tuple[list[Point], Position]]:
    """Return the points of each complete line after a position, and the position after that line."""
    if since is None or since.generation != source.generation or since.offset > source.size:
        since = Position(source.generation)
    if source.events is not None:
        yield from _events(source, since)
        return
    offset, counts = since.offset, dict(since.counts)
    parse = _mlflow_line(source.metric) if source.metric else _yurt_line
    with source.file.open("rb") as file:
        file.seek(offset)
        while line := file.readline(metric_rows.LONGEST + 1):
            found = parse(line, counts) if line.endswith(b"\n") else []
            offset += len(line)
            while line and not line.endswith(b"\n"):  # the rest of a line that is too long
                line = file.readline(metric_rows.LONGEST)
                offset += len(line)
            if not line:
                return
            yield found, Position(source.generation, offset, dict(counts))


def names(sources: Iterable[Source]) -> set[str]:
    """Return the metrics in files of yurt.log."""
    return {point.metric for source in sources for found, _position in read(source, None) for point in found}


def _events(source: Source, since: Position) -> Iterator[tuple[list[Point], Position]]:
    """Return the points of the complete records of an event file after a position."""
    with source.file.open("rb") as file:
        file.seek(since.offset)
        scalars, read_to = event_file.read(file.read(source.size - since.offset))
    found = [
        Point(name_of(f"{source.events}{each.tag}"), each.value, _whole(each.time * 1000), _whole(each.step))
        for each in scalars
    ]
    if read_to:
        yield found, Position(source.generation, since.offset + read_to)


def _yurt_line(line: bytes, counts: dict[str, int]) -> list[Point]:
    row = metric_rows.row(line)
    if row is None:
        return []
    time = row.pop("time", None)
    step = row.pop("step", None)
    if "rank" in row or not _is_number(time):  # metrics of other ranks would mix with those of the first
        return []
    found = []
    for key, each in row.items():
        value = metric_rows.number(each)
        if value is None:
            continue
        if _is_number(step):
            at = _whole(step)
        else:
            at = counts.get(key, 0)
            counts[key] = at + 1
        found.append(Point(name_of(key), value, _whole(time * 1000), at))
    return found


def _mlflow_line(metric: str) -> Callable[[bytes, dict[str, int]], list[Point]]:
    def parse(line: bytes, _counts: dict[str, int]) -> list[Point]:
        words = line.split()
        try:
            time, value, step = words[0], float(words[1]), words[2] if len(words) > 2 else b"0"
            return [Point(metric, value, _whole(int(time)), _whole(int(step)))]
        except (ValueError, IndexError):
            return []

    return parse


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _whole(value: float) -> int:
    """Return a number as MLflow's databases can store it."""
    return int(max(-LARGEST, min(LARGEST, value))) if isinstance(value, int) or math.isfinite(value) else 0
