"""logs: read and follow the output of runs."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from yurt.cli import call, render
from yurt.cli.completers import run_names
from yurt.cli.declare import argument, option, verb
from yurt.cli.filters import FILTER
from yurt.cli.values import Number
from yurt.config import paths
from yurt.lifecycle import select
from yurt.model.files import Stream
from yurt.model.run import Run
from yurt.store import Store

if TYPE_CHECKING:
    from yurt.cli.terminal import TerminalFilter
    from yurt.model.files import Stream
    from yurt.model.run import Run


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
    from yurt.contexts.fan_out import side_by_side

    side_by_side(lambda context: one(index.twin(), context), list(by_context), most=len(by_context))


def _contexts(index: Store, run: Run) -> list[str]:
    """Return the contexts that may have output of a run."""
    if not run.race:
        return [run.context]
    from yurt.lifecycle.races.view import contexts_of

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


EXAMPLES = [
    "yurt logs -",
    "yurt logs -f x7q4z",
    "yurt logs --tail 20 x7q4z 8m2kd",
    "yurt logs -f @last-sweep",
    "yurt logs @last-sweep --filter state=failed",
]


@verb(examples=EXAMPLES, context_help="")
@argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=run_names)
@option("-f", "--follow", is_flag=True, help="Print new output until the runs have finished.")
@option("--tail", "lines", metavar="N", type=Number(1), help="Start with the last N lines.")
@option("--out", "only_out", is_flag=True, help="Show only standard output.")
@option("--err", "only_err", is_flag=True, help="Show only standard error.")
@FILTER
def logs_command(
    runs: tuple[str, ...], follow: bool, lines: int | None, filters: tuple[str, ...], **only: bool
) -> None:
    """Show the output of runs.

    Prints the run's standard output to standard output and its standard error to standard error. With several runs,
    each line is prefixed with the run id; for a sweep, with the task number. For more than 20 tasks, only the last 10
    lines of each are shown. --follow reconnects after a lost connection without losing or repeating lines.

    On a terminal, control sequences other than colours and the cursor moves of progress bars are dropped: they could
    change the title, the clipboard or the keyboard. --plain drops colours and cursor moves too; NO_COLOR does not
    change the output of runs. A pipe or file gets the exact bytes.
    """

    one: Stream | None = None
    if only["only_out"] != only["only_err"]:
        one = "out" if only["only_out"] else "err"
    printer = Printer({one} if one else {"out", "err"})
    if follow:
        call.enable_gc()
    with printer:
        logs(runs, printer, filters=filters, follow=follow, lines=lines, only=one)


class Printer:
    """Prints the output of runs: as it is for one run, with a label before each line for several.

    The label is the task number if all are tasks of one sweep, otherwise the run. As a context manager, it leaves the
    terminal without colours of a run, also after Ctrl-C.
    """

    def __init__(self, wanted: Collection[str] = ("out", "err")) -> None:
        self.wanted = wanted
        self.quiet = call.current().quiet if call.active() else True
        self.made: dict[str, _Sink] = {}
        self.last: _Sink | None = None
        self.printed: set[str] = set()

    def __enter__(self) -> Printer:
        return self

    def __exit__(self, *_error: object) -> None:
        for sink in list(self.made.values()):  # after Ctrl-C, other threads may still add some
            sink.reset()

    def begin(self, runs: Sequence[Run], *, labels: bool) -> None:
        self.labels = labels
        if not labels:
            self.last = self.made[runs[0].id] = _Sink(runs[0].id, self.wanted)
            return
        sweeps = {run.sweep or run.id for run in runs if run.tasks or run.sweep}
        self.alone = len(sweeps) == 1 and all(run.tasks or run.sweep for run in runs)
        self.width = max(len(str(run.tasks - 1 if run.tasks else run.task or 0)) for run in runs)

    def wrote(self, run: str, which: Stream, part: bytes) -> None:
        if run not in self.made:
            label = f"{run.rpartition('.')[2]:>{self.width}} | " if self.alone else f"[{run}] "
            self.made[run] = _Sink(run, self.wanted, label)
        self.made[run](which, part)

    def ended(self, run: str) -> None:
        if run in self.made:
            self.made.pop(run).end()

    def word(self, text: str) -> None:
        kind = text.partition(";")[0] if self.labels else text
        if self.quiet or kind in self.printed:
            return
        self.printed.add(kind)
        if self.last is not None:
            self.last.notice(f"yurt: {render.escaped(text)}")
        else:
            print(f"yurt: {render.escaped(text)}", file=sys.stderr)

    def warn(self, text: str) -> None:
        middle = self.last is not None and not self.last.line_ended
        print(("\n" if middle else "") + f"yurt: warning: {render.escaped(text)}", file=sys.stderr)

    def shortened(self, lines: int, tasks: int) -> None:
        if not self.quiet:
            print(
                f"yurt: showing the last {lines} lines of each of {tasks} tasks; --tail N shows more", file=sys.stderr
            )


LONGEST = 1_000_000
"""Bytes of a line that are shown with a label or with --json: it is held until it is complete."""


class _Sink:
    """Writes the output of one run: bytes as they are; with a label, complete lines; with --json, an envelope a line.

    What a terminal receives is filtered. Of a line longer than LONGEST, the beginning is written, and how much is left
    out.
    """

    def __init__(self, run: str, wanted: Collection[str], label: str = "") -> None:
        self.json = call.active() and call.current().json
        self.run, self.wanted, self.label = run, wanted, label.encode()
        self.held = {"out": bytearray(), "err": bytearray()}
        self.left_out = {"out": 0, "err": 0}
        self.filters = {} if self.json else _filters()
        self.line_ended = True
        self.notices: list[str] = []

    def __call__(self, which: str, part: bytes) -> None:
        if which not in self.wanted:
            return
        self._print(which, self.filters[which].feed(part) if which in self.filters else part)

    def _print(self, which: str, part: bytes) -> None:
        if not self.json and not self.label:
            self._write(which, part)
            return
        *ends, rest = part.split(b"\n")
        for end in ends:
            self._hold(which, end)
            self._line(which)
        self._hold(which, rest)

    def _hold(self, which: str, part: bytes) -> None:
        """Keep a part of a line until it is complete."""
        held = self.held[which]
        room = LONGEST - len(held)
        held += part[:room]
        self.left_out[which] += max(0, len(part) - room)

    def notice(self, text: str) -> None:
        """Print a message on standard error, but not inside a line of the run."""
        self.notices.append(text)
        self._print_notices()

    def _print_notices(self, *, now: bool = False) -> None:
        if self.notices and (self.line_ended or now):
            print("\n".join(self.notices), file=sys.stderr)
            self.notices.clear()

    def end(self) -> None:
        self._print_notices(now=True)
        for which, stream in self.filters.items():
            self._print(which, stream.end())
        for which, rest in self.held.items():
            if rest:
                self._line(which)
        self.reset()

    def reset(self) -> None:
        """Turn off the colours that the run has turned on."""
        for which, stream in self.filters.items():
            self._write(which, stream.reset())

    def _line(self, which: str) -> None:
        """Write the line that is held."""
        line, more = bytes(self.held[which]), self.left_out[which]
        self.held[which].clear()
        self.left_out[which] = 0
        if more:
            line += f" [{more} more bytes of this line]".encode()
        if self.json:
            stream: Stream = "out" if which == "out" else "err"
            render.stream("log", LogLine(self.run, stream, line.decode(errors="replace")))
        else:
            off = self.filters[which].RESET if which in self.filters and b"\x1b" in line else b""  # a label follows
            self._write(which, self.label + line + off + b"\n")

    def _write(self, which: str, part: bytes) -> None:
        if not part:
            return
        target = sys.stdout if which == "out" else sys.stderr
        target.flush()  # earlier messages of yurt come first
        if which == "err" and self.notices and b"\n" in part:
            line, newline, part = part.partition(b"\n")
            target.buffer.write(line + newline)
            target.buffer.flush()
            self._print_notices(now=True)
        target.buffer.write(part)
        target.buffer.flush()
        if which == "err" and part:
            self.line_ended = part.endswith(b"\n")


def _filters() -> dict[str, TerminalFilter]:
    """Return a filter for each stream that is printed to a terminal."""
    terminals = [which for which, target in (("out", sys.stdout), ("err", sys.stderr)) if target.isatty()]
    if not terminals:
        return {}
    from yurt.cli.terminal import TerminalFilter

    return {which: TerminalFilter(plain=call.plain()) for which in terminals}
