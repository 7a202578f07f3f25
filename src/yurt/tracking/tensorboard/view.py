"""The log folder of one TensorBoard: links to the copies of event files, in folders with yurt's names.

TensorBoard mixes the points of a file with those of a file that replaces it. So a run of which a file was replaced gets
a new folder, and its old one is removed.
"""

from __future__ import annotations

import contextlib
import math
import shutil
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from yurt import private
from yurt.config import paths
from yurt.model import ids, layout, metric_rows, params
from yurt.model.growth import EVENTS
from yurt.model.metric_rows import number
from yurt.model.run import Run
from yurt.store import Entry, Store
from yurt.tracking.followed import Copy, Followed
from yurt.tracking.tensorboard import labels

METRICS_FILE = "events.out.tfevents.0000000000.yurt"
HPARAMS_FILE = "events.out.tfevents.9999999999.yurt.hparams"
"""The last name in a folder: TensorBoard uses the first hyperparameters it finds, so those of the script itself."""

PIECE = 4 << 20
"""Bytes that are converted at a time."""

LARGEST_STEP = 2**63 - 1

_OWN = ("time", "step", "rank")


class Converted:
    """An event file that is made from metrics.jsonl, and continued as that grows."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._offset = 0
        self._rows = 0
        self._time = 0.0

    def follow(self, source: Path) -> None:
        """Convert the complete lines that are new. OSError if a file cannot be read or written."""
        with source.open("rb") as stream:
            stream.seek(self._offset)
            held = b""
            while piece := stream.read(PIECE):
                lines, newline, held = (held + piece).rpartition(b"\n")
                if newline:
                    self._append(lines)
                    self._offset += len(lines) + 1

    def _append(self, lines: bytes) -> None:
        events = b"".join(self._events(lines))
        with open(self._file, "ab", opener=private.opener) as stream:
            if stream.tell() == 0:
                stream.write(header(self._time))
            stream.write(events)

    def _events(self, lines: bytes) -> list[bytes]:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        made = []
        for line in lines.split(b"\n"):
            row = _row(line)
            if row is None:
                continue
            at, self._rows = self._rows, self._rows + 1
            self._time = number(row.get("time")) or self._time
            values = [
                Summary.Value(tag=name, simple_value=value)
                for name, each in row.items()
                if name not in _OWN and (value := number(each)) is not None
            ]
            if values:
                event = Event(wall_time=self._time, step=_step(row.get("step"), at), summary=Summary(value=values))
                made.append(record(event.SerializeToString()))
        return made


def write_hparams(file: Path, values: Mapping[str, Any], *, trial: str, started: float) -> None:
    """Write the parameters of a run as hyperparameters, into an event file of their own."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.plugins.hparams.summary_v2 import hparams_pb

    plain = {key: _hparam(value) for key, value in values.items()}
    summary = hparams_pb(plain, trial_id=trial, start_time_secs=started)
    event = Event(wall_time=started, step=0, summary=summary)
    private.write(file, header(started) + record(event.SerializeToString()))


def header(at: float) -> bytes:
    """Return the first record of an event file."""
    from tensorboard.compat.proto.event_pb2 import Event

    return record(Event(wall_time=at, file_version="brain.Event:2").SerializeToString())


def record(content: bytes) -> bytes:
    """Return one record of an event file."""
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

    size = struct.pack("<Q", len(content))
    sums = [struct.pack("<I", masked_crc32c(each)) for each in (size, content)]
    return size + sums[0] + content + sums[1]


def _row(line: bytes) -> dict[str, Any] | None:
    """Return a line that the first process of the run logged."""
    row = metric_rows.row(line)
    return None if row is None or row.get("rank") else row


def _step(value: Any, at: int) -> int:
    """Return the step of a row; its number if it has none."""
    step = number(value)
    if step is None or not math.isfinite(step):
        return at
    exact = value if isinstance(value, int) else int(step)
    return max(-LARGEST_STEP, min(LARGEST_STEP, exact))


def _hparam(value: Any) -> bool | float | str:
    """Return a parameter as TensorBoard has them; a number that was typed as text is a number."""
    value = params.typed(value) if isinstance(value, str) else value
    if isinstance(value, bool):
        return value
    found = None if isinstance(value, str) else number(value)
    return params.summary(value) if found is None else found


TRIES = 5


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A run or a task in the view."""

    id: str
    label: str
    params: dict[str, Any]
    started: float


class View:
    """The log folder. `update` brings it up to date with the copies."""

    def __init__(self, folder: Path, store: Store, entries: Sequence[Entry], *, logdir: str = "") -> None:
        self.folder, self._logdir = folder, logdir
        paths.make_private(folder)
        self._entries = list(entries)
        self._names = labels.of_runs(list(_parents(store, entries).values()))
        self._plans = _Plans(store)
        self._shown: dict[str, _Shown] = {}
        self._taken: set[str] = set()

    def update(self) -> None:
        """Show what has come since the last call."""
        copies: dict[str, dict[str, Copy]] = {}
        for entry in self._entries:
            run = entry.run.sweep or entry.run.id
            if run not in copies:
                copies[run] = _copies(run)
            for member, files in self._members(entry, copies[run]):
                self._show(member, files)

    def shown(self) -> dict[str, list[str]]:
        """Return the names in TensorBoard of each run and task that has curves, by id."""
        return {name: each.names() for name, each in self._shown.items() if each.names()}

    def _members(self, entry: Entry, copies: Mapping[str, Copy]) -> Iterator[tuple[Member, dict[str, Copy]]]:
        run = entry.run
        if not run.tasks and run.task is None:
            yield self._member(run, None), dict(copies)
            return
        tasks: dict[int, dict[str, Copy]] = {}
        rest: dict[str, Copy] = {}
        for path, copy in copies.items():
            found = labels.is_task(path)
            if found is None:
                rest[path] = copy
            elif run.task in (None, found[0]):
                tasks.setdefault(found[0], {})[found[1]] = copy
        if run.tasks and rest:  # written in the folder in which all of its tasks were started
            yield Member(id=run.id, label=f"{self._names[run.id]}/all tasks", params={}, started=run.created), rest
        for task, files in sorted(tasks.items()):
            yield self._member(run, task), files

    def _member(self, run: Run, number: int | None) -> Member:
        sweep = run.sweep or run.id
        label = self._names[sweep]
        if number is None:
            return Member(id=run.id, label=label, params=run.params, started=run.created)
        name, values = self._plans.task(run, number)
        return Member(id=ids.task(sweep, number), label=f"{label}/{name}", params=values, started=run.created)

    def _show(self, member: Member, files: Mapping[str, Copy]) -> None:
        events = {
            path: copy
            for path, copy in files.items()
            if EVENTS in path.rpartition("/")[2] and self._wanted(path.rpartition("/")[0])
        }
        metrics = None if events or self._logdir else files.get(layout.METRICS)
        if not events and metrics is None:
            return
        shown = self._shown.get(member.id)
        if shown is None:
            shown = self._shown[member.id] = _Shown(self.folder, self._free(member.label, member.id), member)
        with contextlib.suppress(FileNotFoundError):  # a copy was replaced just now: the next call shows the new one
            shown.update(events, metrics)

    def _wanted(self, folder: str) -> bool:
        return not self._logdir or labels.matches(folder, self._logdir)

    def _free(self, label: str, name: str) -> str:
        """Return a label that no other run has."""
        chosen = label if label not in self._taken else f"{label} {name}"
        self._taken.add(chosen)
        return chosen


class _Shown:
    """One run in the view: its folder, with one folder for each folder of event files."""

    def __init__(self, base: Path, label: str, member: Member) -> None:
        self._base, self._label, self._member = base, label, member
        self._number = 1
        self._linked: dict[str, Copy] = {}
        self._below: dict[str, str] = {}
        """The label of each folder of event files; it never changes."""
        self._converted: Converted | None = None
        self._described = False
        """Whether its hyperparameters are in the view."""
        self._generation = 0

    @property
    def _folder(self) -> Path:
        return self._base / (self._label if self._number == 1 else f"{self._label} ({self._number})")

    def names(self) -> list[str]:
        top = self._folder.relative_to(self._base).as_posix()
        if self._converted is not None:
            return [top]
        used = {path.rpartition("/")[0] for path in self._linked}
        return sorted(f"{top}/{self._below[each]}".rstrip("/") for each in used)

    def update(self, events: Mapping[str, Copy], metrics: Copy | None) -> None:
        if self._stale(events, metrics):
            self._begin_again()
        folders = {each.rpartition("/")[0] for each in events}
        for path, copy in events.items():
            if path not in self._linked:
                self._link(path, copy, folders)
        if metrics is not None:
            if self._converted is None:
                paths.make_private(self._folder)
                self._converted, self._generation = Converted(self._folder / METRICS_FILE), metrics.generation
            self._converted.follow(metrics.file)
        if not self._described and self._member.params:
            self._describe(folders)

    def _stale(self, events: Mapping[str, Copy], metrics: Copy | None) -> bool:
        """Whether TensorBoard may have read something that no longer holds."""
        if self._converted is not None:
            return metrics is None or metrics.generation != self._generation
        return any(path not in events or events[path].file != copy.file for path, copy in self._linked.items())

    def _begin_again(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._number += 1
        self._linked, self._converted, self._described = {}, None, False

    def _link(self, path: str, copy: Copy, folders: set[str]) -> None:
        above, _slash, name = path.rpartition("/")
        if above not in self._below:
            self._below[above] = self._free_below(above, folders)
        target = self._folder / self._below[above]
        paths.make_private(target)
        with contextlib.suppress(FileExistsError):
            (target / name).symlink_to(copy.file)
        self._linked[path] = copy

    def _free_below(self, folder: str, folders: set[str]) -> str:
        """Return the label of a folder of event files: short, but not that of another one."""
        taken = set(self._below.values())
        whole = "/".join(labels.part(each) for each in labels.below(folder).split("/"))
        for chosen in (labels.of_folder(folder, folders), whole, folder):
            if chosen not in taken:
                return chosen
        return f"{whole} #{len(taken)}"

    def _describe(self, folders: set[str]) -> None:
        """Write the hyperparameters: above all folders of the run, or into its only one, which then stands alone."""
        target = self._folder / self._below[next(iter(folders))] if len(folders) == 1 else self._folder
        member = self._member
        write_hparams(target / HPARAMS_FILE, member.params, trial=member.id, started=member.started)
        self._described = True


class _Plans:
    """Labels and parameters of tasks, read once for each sweep."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, tuple[list[str], list[dict[str, Any]]]] = {}

    def task(self, run: Run, number: int) -> tuple[str, dict[str, Any]]:
        sweep = run.sweep or run.id
        if sweep not in self._known:
            plan = self._store.plan(sweep)
            sets = plan.sets if plan is not None else []
            self._known[sweep] = labels.of_tasks(sets), sets
        names, sets = self._known[sweep]
        if number >= len(sets):
            return str(number), {}
        return names[number], {**run.params, **sets[number]}


def _parents(store: Store, entries: Sequence[Entry]) -> dict[str, Run]:
    """Return the runs, and the sweeps of tasks, by id."""
    found: dict[str, Run] = {}
    for entry in entries:
        name = entry.run.sweep or entry.run.id
        if name not in found:
            whole = store.get(name) if entry.run.sweep else None
            found[name] = whole.run if whole is not None else msgspec.structs.replace(entry.run, id=name)
    return found


def _copies(run: str) -> dict[str, Copy]:
    """Return the copies of a run, also while another thread or process replaces one."""
    for _try in range(TRIES):
        with contextlib.suppress(FileNotFoundError):
            return Followed(run).copies()
    return {}
