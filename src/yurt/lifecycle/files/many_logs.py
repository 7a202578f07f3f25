"""What many runs of a context write: one connection for all of them, and one look at the site now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from yurt.errors import UnreachableError, YurtError
from yurt.lifecycle.files.logs import from_here
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.model import ids
from yurt.model.files import LogPosition, Stream
from yurt.sites import connect
from yurt.store import Entry, Store

if TYPE_CHECKING:
    from yurt.backends.base import Files

RUNNING = 20
"""Runs that are followed at a time; those that have ended meanwhile are shown and done with."""

AT_ONCE = 500
"""Runs that one stretch reads."""

SOON, LATER = 5, 15
"""Seconds after which one looks who else has begun: where there is room to follow more, and where not."""

LongSink = Callable[[str, Stream, bytes], None]
"""Told of a run, a stream, and what was written to it."""


def copy_many(
    store: Store,
    entries: Sequence[Entry],
    sink: LongSink,
    *,
    lines: int | None = None,
    on_end: Callable[[str], None] = lambda _run: None,
) -> list[str]:
    """What runs have written so far, one after the other; of those that are out of reach, what is kept here.

    Returns what to say of that. UnreachableError: of some nothing is kept.
    """
    said: list[str] = []
    by_context: dict[str, list[LogPosition]] = {}
    for entry in entries:
        by_context.setdefault(entry.run.context, []).append(LogPosition(entry.run.id, entry.run.folder, over=True))
    for name, readings in by_context.items():
        failure: YurtError | None = None
        try:
            _tail(connect.named_backend(name).files, readings, sink, lines=lines, on_end=on_end)
        except YurtError as error:
            failure = error
        left = [each for each in readings if each.gone or not each.done]
        why = f"their folders on {name} are gone" if failure is None else failure.message
        lost = [each.run for each in left if not _kept(store, each, sink, lines)]
        for each in left:
            on_end(each.run)
        if lost and failure is not None:
            raise failure
        if left:
            from_home = f"of {len(left) - len(lost)} runs this is what is kept here"
            said.append(f"{why}; {from_home}" + (f", of {len(lost)} nothing is" if lost else ""))
    return said


def follow_many(
    store: Store,
    context: str,
    names: Sequence[str],
    sink: LongSink,
    *,
    lines: int | None = None,
    on_end: Callable[[str], None] = lambda _run: None,
    on_word: Callable[[str], None] = lambda _words: None,
) -> None:
    """What runs, tasks and sweeps of a context write, as it comes, until all have ended. A cut link is mended.

    `lines`: of those that have begun before, only so many of the last.
    """
    files = connect.named_backend(context).files
    readings: dict[str, LogPosition] = {}
    finished: set[str] = set()
    pause, tail = 0.5, lines
    while True:
        try:
            refreshed = refresh_contexts(store, [context])
            if context in refreshed.failed:
                raise refreshed.failed[context]
            entries = store.several(names)
            batch, more = _next(list(_begun(store, entries, finished)), readings)
            if not batch and all(entry.status.final for entry in entries):
                return
            if more:
                on_word(f"{RUNNING} that run are shown at a time; {more} more wait for their turn")
            if batch:
                room = len(batch) < RUNNING and not all(entry.status.final for entry in entries)
                _tail(files, batch, sink, lines=tail, seconds=SOON if room else LATER, on_end=on_end)
                tail, pause = None, 0.5
            for each in batch:
                if each.gone and each.over:
                    each.done = True
                    if _kept(store, each, sink, lines):
                        on_word(f"the folder of {each.run} on {context} is gone; this is what is kept here")
                if each.done:
                    finished.add(each.run)
                    on_end(each.run)
            if not batch or all(each.gone for each in batch):
                time.sleep(pause)
                pause = min(pause * 1.3, LATER)
        except UnreachableError as error:
            on_word(f"{error.message}; trying again")
            time.sleep(pause)
            pause = min(pause * 2, LATER)


def _begun(store: Store, entries: Sequence[Entry], finished: set[str]) -> Iterator[Entry]:
    """Those that have begun and are not done with; of a sweep, its tasks."""
    for entry in entries:
        if entry.run.tasks:
            known = store.tasks(entry.run.id)
            names = [ids.task(entry.run.id, number) for number in sorted(known) if known[number].started]
            yield from store.several([name for name in names if name not in finished])
        elif entry.status.started and entry.run.id not in finished:
            yield entry


def _next(begun: Sequence[Entry], readings: dict[str, LogPosition]) -> tuple[list[LogPosition], int]:
    """Whom to read now: those that have ended, and as many that run as one can follow. And how many more run."""
    ended = [entry for entry in begun if entry.status.final]
    running = [entry for entry in begun if not entry.status.final]
    running.sort(key=lambda entry: entry.run.id not in readings)  # whoever is followed already goes on
    now = [*ended[: AT_ONCE - RUNNING], *running[:RUNNING]]
    for entry in now:
        reading = readings.setdefault(entry.run.id, LogPosition(entry.run.id, entry.run.folder))
        reading.over, reading.gone = entry.status.final, False
    return [readings[entry.run.id] for entry in now], max(0, len(running) - RUNNING)


def _kept(store: Store, reading: LogPosition, sink: LongSink, lines: int | None) -> bool:
    """Hand out what is kept here of a run's logs, unless some of them came from its site; False if there is nothing."""
    entry = store.get(reading.run)
    if reading.begun or entry is None:
        return False
    return bool(from_here(store, entry.run, lambda which, part: sink(reading.run, which, part), lines))


def _tail(
    files: Files,
    readings: Sequence[LogPosition],
    sink: LongSink,
    *,
    lines: int | None,
    seconds: int = 0,
    on_end: Callable[[str], None],
) -> None:
    """Read on in the logs of runs; for so many seconds, or only what is there."""
    files.tail(
        readings,
        lambda log, which, part: sink(log.run, which, part),
        lines=lines,
        seconds=seconds,
        on_end=lambda log: on_end(log.run),
    )
