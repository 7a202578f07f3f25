"""`yurt logs [-f] RUN…`: what runs wrote."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import click

from yurt.cli import frame, render
from yurt.cli.filters import FILTER
from yurt.cli.frame import run_names, verb

if TYPE_CHECKING:
    from yurt.model.run import Run
    from yurt.verbs.logs import Which


EXAMPLES = [
    "yurt logs -",
    "yurt logs -f x7q4z",
    "yurt logs --tail 20 x7q4z 8m2kd",
    "yurt logs -f @last-sweep",
    "yurt logs @last-sweep --filter state=failed",
]

MANY, LINES = 20, 10
"""Of more tasks of sweeps than that only so many lines are shown, unless --tail says how many."""


@verb(examples=EXAMPLES)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=run_names)
@click.option("-f", "--follow", is_flag=True, help="Go on until the run has ended.")
@click.option("--tail", "lines", metavar="N", type=click.IntRange(1), help="Begin with the last lines.")
@click.option("--out", "only_out", is_flag=True, help="Only standard output.")
@click.option("--err", "only_err", is_flag=True, help="Only standard error.")
@FILTER
def logs(runs: tuple[str, ...], follow: bool, lines: int | None, filters: tuple[str, ...], **only: bool) -> None:
    """Print what runs wrote: their standard output on yours, their standard error on yours.

    Following goes on after a cut connection where it was, with no line lost or doubled. Of several, each line has its
    run before it; of a sweep, the number of its task. Of more than 20 tasks the last 10 lines of each are shown.
    """
    from yurt.verbs import logs as verbs
    from yurt.verbs.many_logs import copy_many
    from yurt.verbs.picked import begun, meant
    from yurt.verbs.places import store
    from yurt.verbs.which import which

    index = store()
    one = only["only_out"] != only["only_err"]
    wanted = {"out" if only["only_out"] else "err"} if one else {"out", "err"}
    if follow:
        entries, warnings = meant(index, runs, filters)
        _warn(warnings)
        known = [[entry.status] if entry.run.sweep else index.tasks(entry.run.id).values() for entry in entries]
        tasks = sum(bool(status.started) for statuses in known for status in statuses)
        follow_all(index, [entry.run for entry in entries], wanted, _lines(lines, tasks))
        return
    entries, warnings = begun(index, runs, filters)
    _warn(warnings)
    if len(entries) == 1 and not any(named.run.sets for named in which(index, runs)):
        sink = _Sink(entries[0].run.id, wanted)
        said = verbs.copy(index, entries[0].run, sink, lines=lines)
        sink.end()
        if said:
            print(("" if sink.line_ended else "\n") + f"yurt: warning: {said}", file=sys.stderr)
        return
    sinks = _Sinks([entry.run for entry in entries], wanted)
    number = sum(bool(entry.run.sweep) for entry in entries)
    _warn(copy_many(index, entries, sinks, lines=_lines(lines, number), on_end=sinks.end))


def _warn(warnings: Sequence[str]) -> None:
    for warning in warnings:
        print(f"yurt: warning: {warning}", file=sys.stderr)


def _lines(lines: int | None, tasks: int) -> int | None:
    """How many lines of each: as many as there are, or as were asked for, or a few where that were too much."""
    if lines is not None or tasks <= MANY:
        return lines
    if not frame.current().quiet:
        print(f"yurt: the last {LINES} lines of each of {tasks} tasks; --tail N for more of them", file=sys.stderr)
    return LINES


def follow_all(
    index: Any, runs: Sequence[Run], wanted: Collection[str] = ("out", "err"), lines: int | None = None
) -> None:
    """Show what runs, tasks and sweeps write until they have ended: all of one context over one connection."""
    if len(runs) == 1 and not runs[0].sets:
        _follow(index, runs[0], wanted, lines)
        return
    by_context: dict[str, list[Run]] = {}
    for run in runs:
        by_context.setdefault(run.context, []).append(run)
    sinks = _Sinks(runs, wanted)
    if len(by_context) == 1:
        _follow_many(index, runs[0].context, sinks, runs, lines)
        return
    from yurt.verbs.threads import side_by_side

    def one(context: str) -> None:
        _follow_many(index.twin(), context, sinks, by_context[context], lines)

    side_by_side(one, list(by_context), most=len(by_context))


def _follow_many(index: Any, context: str, sinks: _Sinks, runs: Sequence[Run], lines: int | None) -> None:
    from yurt.verbs.many_logs import follow_many

    frame.stay()
    quiet = frame.current().quiet if click.get_current_context(silent=True) else True
    told: set[str] = set()

    def on_word(words: str) -> None:
        kind = words.partition(";")[0]
        if not quiet and kind not in told:
            told.add(kind)
            print(f"yurt: {words}", file=sys.stderr)

    names = [run.id for run in runs]
    follow_many(index, context, names, sinks, lines=lines, on_end=sinks.end, on_word=on_word)


def _follow(index: Any, run: Run, wanted: Collection[str], lines: int | None) -> None:
    from yurt.verbs import logs as verbs

    frame.stay()
    quiet = frame.current().quiet if click.get_current_context(silent=True) else True
    told: list[str] = []
    sink = _Sink(run.id, wanted)

    def on_word(words: str) -> None:
        if not quiet and words not in told:
            told.append(words)
            sink.notice(f"yurt: {words}")

    verbs.follow(index, run, sink, lines=lines, on_word=on_word)
    sink.end()


class _Sinks:
    """One for each run, made when it first writes. Before its lines stands the number of a task, if all are tasks of
    one sweep, else the run."""

    def __init__(self, runs: Sequence[Run], wanted: Collection[str]) -> None:
        self.wanted = wanted
        self.made: dict[str, _Sink] = {}
        sweeps = {run.sweep or run.id for run in runs if run.sets or run.sweep}
        self.alone = len(sweeps) == 1 and all(run.sets or run.sweep for run in runs)
        self.width = max(len(str(run.sets - 1 if run.sets else run.task or 0)) for run in runs)

    def __call__(self, run: str, which: str, part: bytes) -> None:
        if run not in self.made:
            label = f"{run.rpartition('.')[2]:>{self.width}} | " if self.alone else f"[{run}] "
            self.made[run] = _Sink(run, self.wanted, label)
        self.made[run](which, part)

    def end(self, run: str) -> None:
        if run in self.made:
            self.made.pop(run).end()


class _Sink:
    """Writes what comes: bytes as they are; with a label, whole lines with that before them; with --json, one
    envelope a piece."""

    def __init__(self, run: str, wanted: Collection[str], label: str = "") -> None:
        context = click.get_current_context(silent=True)
        self.json = context is not None and frame.current().json
        self.run, self.wanted, self.label = run, wanted, label.encode()
        self.held = {"out": b"", "err": b""}
        self.line_ended = True
        self.notices: list[str] = []

    def __call__(self, which: str, part: bytes) -> None:
        if which not in self.wanted:
            return
        if not self.json and not self.label:
            self._write(which, part)
            return
        lines = (self.held[which] + part).split(b"\n")
        self.held[which] = lines.pop()
        for line in lines:
            self._line(which, line)

    def notice(self, text: str) -> None:
        """Say something on standard error, but not in the middle of a line of the run's."""
        self.notices.append(text)
        self._say()

    def _say(self, *, at_once: bool = False) -> None:
        if self.notices and (self.line_ended or at_once):
            print("\n".join(self.notices), file=sys.stderr)
            self.notices.clear()

    def end(self) -> None:
        self._say(at_once=True)
        for which, rest in self.held.items():
            if rest:
                self._line(which, rest)

    def _line(self, which: str, line: bytes) -> None:
        if self.json:
            from yurt.verbs.logs import LogLine

            stream: Which = "out" if which == "out" else "err"
            render.stream("log", LogLine(self.run, stream, line.decode(errors="replace")))
        else:
            self._write(which, self.label + line + b"\n")

    def _write(self, which: str, part: bytes) -> None:
        target = sys.stdout if which == "out" else sys.stderr
        target.flush()  # what yurt itself said before goes first
        if which == "err" and self.notices and b"\n" in part:
            line, newline, part = part.partition(b"\n")
            target.buffer.write(line + newline)
            target.buffer.flush()
            self._say(at_once=True)
        target.buffer.write(part)
        target.buffer.flush()
        if which == "err" and part:
            self.line_ended = part.endswith(b"\n")
