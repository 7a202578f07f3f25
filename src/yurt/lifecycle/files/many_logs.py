"""Logs of many runs of a context: one connection for all, and one status query from time to time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from yurt.clocks import clocks, ending_by
from yurt.contexts import connect
from yurt.errors import UnreachableError, YurtError
from yurt.lifecycle.files.logs import about_cut, all_saved, copy_saved
from yurt.lifecycle.refresh.full_disk import checked
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.model import ids
from yurt.model.files import LogPosition, Stream
from yurt.store import Entry, Store

if TYPE_CHECKING:
    from yurt.backends.base import Files

RUNNING = 20
"""Running runs that are followed at a time. Finished ones are shown once, beside these."""

AT_ONCE = 500
"""Runs that one request reads."""

SOON, LATER = 5, 15
"""Seconds between checks for newly started runs: if more can be followed, and if not."""

RunSink = Callable[[str, Stream, bytes], None]
"""Receives a run id, a stream, and the bytes written to it."""


def copy_many(
    store: Store,
    entries: Sequence[Entry],
    sink: RunSink,
    *,
    lines: int | None = None,
    on_end: Callable[[str], None] = lambda _run: None,
) -> list[str]:
    """Pass what runs have written so far to `sink`, one run after the other.

    For runs that cannot be read, the logs saved on this machine are used. Return warnings about that.
    UnreachableError if nothing is saved of some of them.
    """
    warnings: list[str] = []
    by_context: dict[str, list[LogPosition]] = {}
    for entry in entries:
        if not entry.run.folder:  # its site was never reached
            on_end(entry.run.id)
            continue
        by_context.setdefault(entry.run.context, []).append(LogPosition(entry.run.id, entry.run.folder, over=True))
    known = {entry.run.id: entry for entry in entries}
    for name, readings in by_context.items():
        failure: YurtError | None = None
        saved = all(all_saved(store, known[each.run]) for each in readings)  # then the site is given only a moment
        try:
            with ending_by(time.monotonic() + clocks().again if saved else None):
                files = connect.responding_backend(name, alone=not saved).files
                _tail(files, readings, sink, lines=lines, on_end=on_end)
        except YurtError as error:
            failure = error
        warnings += [f"run {each.run}: {about_cut(each)}" for each in readings if each.cut]
        left = [each for each in readings if each.gone or not each.done]
        why = f"the run folders on {name} are gone" if failure is None else failure.message
        lost = [each.run for each in left if not _copy_saved(store, each, sink, lines)]
        for each in left:
            on_end(each.run)
        if lost and failure is not None:
            raise failure
        if left:
            note = f"showing the local copy for {len(left) - len(lost)} of {len(left)} runs"
            warnings.append(f"{why}; {note}")
    return warnings


def follow_many(
    store: Store,
    context: str,
    names: Sequence[str],
    sink: RunSink,
    *,
    lines: int | None = None,
    on_end: Callable[[str], None] = lambda _run: None,
    on_word: Callable[[str], None] = lambda _message: None,
) -> None:
    """Pass what runs, tasks and sweeps of a context write to `sink` until all have finished.

    A lost connection is opened again. `lines` limits what is shown of runs that have already started to their last
    lines.
    """
    files = connect.named_backend(context).files
    readings: dict[str, LogPosition] = {}
    finished: set[str] = set()
    pause, tail = 0.5, lines
    while True:
        try:
            refreshed = checked(store, names, lambda: refresh_contexts(store, [context]))
            if context in refreshed.failed:
                raise refreshed.failed[context]
            entries = store.several(names)
            here = (entry for entry in _started(store, entries, finished) if entry.run.context == context)
            batch, more = _next(list(here), readings)
            if not batch and all(entry.status.final for entry in entries):
                return
            if more:
                on_word(f"following at most {RUNNING} running tasks at a time; {more} more running")
            if batch:
                room = len(batch) < RUNNING and not all(entry.status.final for entry in entries)
                _tail(files, batch, sink, lines=tail, seconds=SOON if room else LATER, on_end=on_end)
                tail, pause = None, 0.5
            for each in batch:
                if each.gone and each.over:
                    each.done = True
                    if _copy_saved(store, each, sink, lines):
                        on_word(f"the run folder of {each.run} on {context} is gone; showing the local copy")
                if each.done:
                    finished.add(each.run)
                    on_end(each.run)
            if not batch or all(each.gone for each in batch):
                time.sleep(pause)
                pause = min(pause * 1.3, LATER)
        except UnreachableError as error:
            on_word(f"{error.message}; reconnecting")
            time.sleep(pause)
            pause = min(pause * 2, LATER)


def _started(store: Store, entries: Sequence[Entry], finished: set[str]) -> Iterator[Entry]:
    """Yield the entries that have started and are not in `finished`; for a sweep, its tasks."""
    for entry in entries:
        if entry.run.tasks:
            known = store.tasks(entry.run.id)
            names = [ids.task(entry.run.id, number) for number in sorted(known) if known[number].started]
            yield from store.several([name for name in names if name not in finished])
        elif entry.status.started and entry.run.id not in finished:
            yield entry


def _next(started: Sequence[Entry], readings: dict[str, LogPosition]) -> tuple[list[LogPosition], int]:
    """Return the logs to read now (finished runs, and up to RUNNING running ones) and how many more are running."""
    ended = [entry for entry in started if entry.status.final]
    running = [entry for entry in started if not entry.status.final]
    running.sort(key=lambda entry: entry.run.id not in readings)  # runs that are already followed stay
    now = [*ended[: AT_ONCE - RUNNING], *running[:RUNNING]]
    for entry in now:
        reading = readings.setdefault(entry.run.id, LogPosition(entry.run.id, entry.run.folder))
        reading.over, reading.gone = entry.status.final, False
    return [readings[entry.run.id] for entry in now], max(0, len(running) - RUNNING)


def _copy_saved(store: Store, reading: LogPosition, sink: RunSink, lines: int | None) -> bool:
    """Pass the locally saved logs of a run to `sink`, unless some bytes came from its site. False if none are saved."""
    entry = store.get(reading.run)
    if reading.begun or entry is None:
        return False
    return bool(copy_saved(store, entry.run, lambda which, part: sink(reading.run, which, part), lines))


def _tail(
    files: Files,
    readings: Sequence[LogPosition],
    sink: RunSink,
    *,
    lines: int | None,
    seconds: int = 0,
    on_end: Callable[[str], None],
) -> None:
    """Continue to read the logs of runs, for `seconds`, or only what exists now."""
    files.tail(
        readings,
        lambda log, which, part: sink(log.run, which, part),
        lines=lines,
        seconds=seconds,
        on_end=lambda log: on_end(log.run),
    )
