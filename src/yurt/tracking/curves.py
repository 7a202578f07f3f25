"""Curves of runs: what they logged, step by step, from the copies on this machine."""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import PurePosixPath

import msgspec

from yurt.model import event_file, ids, layout, metric_rows
from yurt.model.growth import EVENTS, MLRUNS
from yurt.model.metric_rows import LONGEST, number
from yurt.model.site_words import LATEST
from yurt.store import Entry
from yurt.tracking.followed import Copy, Followed

OWN = ("time", "step", "rank")
"""Fields of a line of metrics.jsonl that are not metrics."""


class Point(msgspec.Struct, frozen=True, array_like=True):
    """One value of a metric. Without a step of the script, the step is the number of earlier values."""

    step: float
    time: float
    value: float


class RunCurves(msgspec.Struct, frozen=True):
    """The curves of a run or a task, by metric."""

    run: str
    curves: dict[str, list[Point]]
    long_lines: int = 0
    """Lines of metrics.jsonl that are left out because they are too long."""


class Reader:
    """Reads curves again and again: only runs whose files have changed are read again."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[object, RunCurves]] = {}

    def of(self, entries: Sequence[Entry]) -> list[RunCurves]:
        """Return the curves of runs, and of the tasks of sweeps, in order; those without any are left out."""
        copies: dict[str, dict[str, dict[str, Copy]]] = {}
        found: dict[str, RunCurves] = {}
        for entry in entries:
            run = entry.run
            whole = run.sweep or run.id
            if whole not in copies:
                copies[whole] = _by_task(whole, Followed(whole).copies().values())
            names = sorted(copies[whole], key=_number) if run.tasks else [run.id]
            for name in names:
                curves = self._curves(name, copies[whole].get(name, {}))
                if curves.curves:
                    found.setdefault(name, curves)
        return list(found.values())

    def _curves(self, run: str, copies: Mapping[str, Copy]) -> RunCurves:
        state = [(path, copy.generation, copy.size) for path, copy in copies.items()]
        if run not in self._read or self._read[run][0] != state:
            self._read[run] = (state, RunCurves(run, *read(copies)))
        return self._read[run][1]


def _number(name: str) -> int:
    return int(name.rpartition(".")[2]) if "." in name else -1


TASK = re.compile(rf"{layout.TASKS}/([0-9]+)/")


def _by_task(whole: str, copies: Iterable[Copy]) -> dict[str, dict[str, Copy]]:
    """Return the copies of a run or of each task of a sweep, by path in its folder."""
    found: dict[str, dict[str, Copy]] = {}
    for copy in copies:
        task = TASK.match(copy.path) if ids.is_sweep(whole) else None
        name = ids.task(whole, int(task[1])) if task else whole
        found.setdefault(name, {})[copy.path[task.end() if task else 0 :]] = copy
    return found


def read(copies: Mapping[str, Copy]) -> tuple[dict[str, list[Point]], int]:
    """Return the curves of one run: of `yurt.log`, then of event files, then of MLflow; a name counts once.

    Also return how many lines are left out because they are too long.
    """
    logs = [copy for path, copy in copies.items() if re.fullmatch(r"metrics(\.[0-9]+)?\.jsonl", path)]
    found, long_lines = _logged(logs)
    for others in (_events(copies), _mlflow(copies)):
        for name, points in others.items():
            found.setdefault(name, points)
    return found, long_lines


def _logged(copies: Iterable[Copy]) -> tuple[dict[str, list[Point]], int]:
    """Return the curves of metrics.jsonl. Lines of other ranks than the first are left out, as in `yurt show`."""
    found: dict[str, list[Point]] = {}
    long_lines = 0
    for copy in copies:
        for line in _lines(copy):
            if len(line) > LONGEST:
                long_lines += 1
                continue
            row = metric_rows.row(line)
            if row is None or "rank" in row:
                continue
            step, time = number(row.get("step")), number(row.get("time")) or 0.0
            for name, each in row.items():
                if name not in OWN and (value := number(each)) is not None:
                    _add(found.setdefault(name, []), step, time, value)
    return found, long_lines


def _lines(copy: Copy) -> Iterator[bytes]:
    """Yield the lines of a file; of a longer one than LONGEST, some more bytes than that."""
    left = copy.size
    with suppress(OSError), copy.file.open("rb") as file:  # replaced since it was listed
        while left > 0 and (line := file.readline(min(left, LONGEST + 1))):
            left -= len(line)
            yield line
            while len(line) > LONGEST and not line.endswith(b"\n") and left > 0:  # the rest of this line
                line = file.readline(min(left, LONGEST + 1))
                left -= len(line)


def _events(copies: Mapping[str, Copy]) -> dict[str, list[Point]]:
    """Return the curves of event files. If they are in several folders, names begin with the part that differs."""
    folders: dict[str, list[Copy]] = {}
    for path, copy in copies.items():
        folder, _, name = path.rpartition("/")
        if EVENTS in name:
            folders.setdefault(folder, []).append(copy)
    common = common_folder(list(folders))
    found: dict[str, list[Point]] = {}
    for folder, files in folders.items():
        below = PurePosixPath(folder).relative_to(common).as_posix() if folder != common else "."
        scalars = [each for file in files for each in event_file.read(_content(file))[0]]
        if len(files) > 1 and any(later.time < each.time for each, later in pairwise(scalars)):
            scalars.sort(key=lambda each: each.time)  # files that were written side by side
        for each in scalars:
            name = each.tag if below == "." else f"{below}/{each.tag}"
            _add(found.setdefault(name, []), float(each.step), each.time, each.value)
    return found


def common_folder(folders: Sequence[str]) -> str:
    """Return the folder that contains all of these, or is the only one."""
    return os.path.commonpath(folders) if folders and all(folders) else ""


METRIC = re.compile(rf"{layout.OUTPUTS}/{MLRUNS}/[^/]+/([^/]+)/metrics/(.+)")


def _mlflow(copies: Mapping[str, Copy]) -> dict[str, list[Point]]:
    """Return the curves of the script's own MLflow store: files with lines TIME-IN-MS VALUE STEP."""
    files = [(match[1], match[2], copy) for path, copy in copies.items() if (match := METRIC.fullmatch(path))]
    names = _mlflow_names(copies, {run for run, _name, _copy in files})
    found: dict[str, list[Point]] = {}
    for run, name, copy in files:
        points = found.setdefault(f"{names[run]}/{name}" if len(names) > 1 else name, [])
        for line in _content(copy).split(b"\n"):
            words = line.split()
            try:
                _add(points, float(words[2]), float(words[0]) / 1000, float(words[1]))
            except (IndexError, ValueError):  # an incomplete line
                continue
    return {name: points for name, points in found.items() if points}


def _mlflow_names(copies: Mapping[str, Copy], runs: Collection[str]) -> dict[str, str]:
    """Return the names that the script gave to its MLflow runs, else the beginnings of their ids."""
    tag = re.compile(rf"{layout.OUTPUTS}/{MLRUNS}/[^/]+/([^/]+)/tags/mlflow\.runName")
    given = {
        match[1]: _content(copy).decode(errors="replace").strip()
        for path, copy in copies.items()
        if (match := tag.fullmatch(path))
    }
    alike = Counter(given.values())
    return {run: given[run] if given.get(run) and alike[given[run]] == 1 else run[:8] for run in runs}


def _add(points: list[Point], step: float | None, time: float, value: float) -> None:
    """Append a value. A step before the last one means that the script was restarted: what followed it is dropped."""
    if step is None or not math.isfinite(step):
        step = float(len(points))
    time = time if abs(time) < LATEST else 0.0
    if points and points[-1].step > step:
        while points and points[-1].step >= step:
            points.pop()
    points.append(Point(step, time, value))


def _content(copy: Copy) -> bytes:
    try:
        return copy.file.read_bytes()[: copy.size]
    except OSError:  # replaced since it was listed
        return b""
