"""logs: read and follow the output of runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from yurt.config import paths
from yurt.lifecycle import select
from yurt.model.files import Stream
from yurt.model.run import Run
from yurt.store import Store

MANY, LINES = 20, 10
"""For more than MANY tasks, show only the last LINES lines of each, unless the user gives a number."""


class LogLine(msgspec.Struct, frozen=True):
    """One line of a run's output."""

    run: str
    stream: Stream
    line: str


class Reader(Protocol):
    """Receives the output of runs as it arrives."""

    def begin(self, runs: Sequence[Run], *, labels: bool) -> None:
        """Announce the runs whose output follows. With `labels`, the reader must show which run wrote each line."""

    def wrote(self, run: str, which: Stream, part: bytes) -> None:
        """Receive a piece of a run's output."""

    def ended(self, run: str) -> None:
        """The output of a run is complete."""

    def word(self, text: str) -> None:
        """A notice for the user."""

    def warn(self, text: str) -> None:
        """A warning for the user."""

    def shortened(self, lines: int, tasks: int) -> None:
        """Only the last `lines` lines of each of `tasks` tasks follow."""


def logs(
    names: Sequence[str],
    reader: Reader,
    *,
    filters: Sequence[str] = (),
    follow: bool = False,
    lines: int | None = None,
    only: Stream | None = None,
) -> None:
    """Pass the output of runs and tasks to `reader`: what they wrote so far; with `follow`, until all have finished.

    `only`: the other log may be left out.
    """
    index = _store()
    if follow:
        entries, warnings = select.meant(index, names, filters)
        _warn(reader, warnings)
        known = [[entry.status] if entry.run.sweep else index.tasks(entry.run.id).values() for entry in entries]
        tasks = sum(bool(status.started) for statuses in known for status in statuses)
        follow_runs(index, [entry.run for entry in entries], reader, _lines(reader, lines, tasks))
        return
    entries, warnings = select.begun(index, names, filters)
    _warn(reader, warnings)
    if len(entries) == 1 and not any(named.run.tasks for named in select.which(index, names)):
        from yurt.lifecycle.files.logs import copy

        run = entries[0].run
        reader.begin([run], labels=False)
        message = copy(index, run, lambda which, part: reader.wrote(run.id, which, part), lines=lines, only=only)
        reader.ended(run.id)
        _warn(reader, [message] if message else [])
        return
    from yurt.lifecycle.files.many_logs import copy_many

    reader.begin([entry.run for entry in entries], labels=True)
    number = sum(bool(entry.run.sweep) for entry in entries)
    shown = _lines(reader, lines, number)
    _warn(reader, copy_many(index, entries, reader.wrote, lines=shown, on_end=reader.ended))


def _store() -> Store:
    return Store(f"{paths.data_folder()}/yurt.db")


def follow_started(runs: Sequence[Run], reader: Reader) -> None:
    """Follow the output of runs that were just submitted, until they have finished."""
    with _store() as index:
        follow_runs(index, runs, reader)


def follow_runs(index: Store, runs: Sequence[Run], reader: Reader, lines: int | None = None) -> None:
    """Follow the output of runs, tasks and sweeps until they have finished, over one connection for each context."""
    if len(runs) == 1 and not runs[0].tasks:
        from yurt.lifecycle.files.logs import follow

        run = runs[0]
        reader.begin(runs, labels=False)
        if run.race:
            from yurt.lifecycle.files.logs import until_decided

            run = until_decided(index, run)
        follow(index, run, lambda which, part: reader.wrote(run.id, which, part), lines=lines, on_word=reader.word)
        reader.ended(run.id)
        return
    by_context: dict[str, list[str]] = {}
    for run in runs:
        for context in _contexts(index, run):
            by_context.setdefault(context, []).append(run.id)
    reader.begin(runs, labels=True)
    from yurt.lifecycle.files.many_logs import follow_many

    def one(index: Store, context: str) -> None:
        names = by_context[context]
        follow_many(index, context, names, reader.wrote, lines=lines, on_end=reader.ended, on_word=reader.word)

    if len(by_context) == 1:
        one(index, runs[0].context)
        return
    from yurt.sites.fan_out import side_by_side

    side_by_side(lambda context: one(index.twin(), context), list(by_context), most=len(by_context))


def _contexts(index: Store, run: Run) -> list[str]:
    """Return the contexts that may have output of a run."""
    if not run.race:
        return [run.context]
    from yurt.lifecycle.race.view import contexts_of

    return contexts_of(index, run)


def _warn(reader: Reader, warnings: Sequence[str]) -> None:
    for warning in warnings:
        reader.warn(warning)


def _lines(reader: Reader, lines: int | None, tasks: int) -> int | None:
    """Return how many lines of each run to show: the requested number, all, or LINES if there are many tasks."""
    if lines is not None or tasks <= MANY:
        return lines
    reader.shortened(LINES, tasks)
    return LINES
