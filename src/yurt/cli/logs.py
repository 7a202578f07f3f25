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


@verb(examples=["yurt logs -", "yurt logs -f x7q4z", "yurt logs --tail 20 x7q4z 8m2kd"])
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=run_names)
@click.option("-f", "--follow", is_flag=True, help="Go on until the run has ended.")
@click.option("--tail", "lines", metavar="N", type=click.IntRange(1), help="Begin with the last lines.")
@click.option("--out", "only_out", is_flag=True, help="Only standard output.")
@click.option("--err", "only_err", is_flag=True, help="Only standard error.")
@FILTER
def logs(runs: tuple[str, ...], follow: bool, lines: int | None, filters: tuple[str, ...], **only: bool) -> None:
    """Print what runs wrote: their standard output on yours, their standard error on yours.

    Following goes on after a cut connection where it was, with no line lost or doubled.
    """
    from yurt.verbs import logs as verbs
    from yurt.verbs.picked import begun
    from yurt.verbs.places import store

    index = store()
    entries, warnings = begun(index, runs, filters)
    frame.current().warnings += warnings
    one = only["only_out"] != only["only_err"]
    wanted = {"out" if only["only_out"] else "err"} if one else {"out", "err"}
    if follow:
        follow_all(index, [entry.run for entry in entries], wanted, lines)
        return
    for entry in entries:
        sink = _Sink(entry.run, wanted, len(entries) > 1)
        said = verbs.copy(index, entry.run, sink, lines=lines)
        sink.end()
        if said:
            print(("" if sink.line_ended else "\n") + f"yurt: warning: {said}", file=sys.stderr)


def follow_all(
    index: Any, runs: Sequence[Run], wanted: Collection[str] = ("out", "err"), lines: int | None = None
) -> None:
    """Show what runs write until they have ended."""
    if len(runs) == 1:
        _follow(index, runs[0], wanted, lines, False)
        return
    from yurt.verbs.threads import side_by_side

    side_by_side(lambda run: _follow(index.twin(), run, wanted, lines, True), runs, most=len(runs))


def _follow(index: Any, run: Run, wanted: Collection[str], lines: int | None, several: bool) -> None:
    from yurt.verbs import logs as verbs

    frame.stay()
    quiet = frame.current().quiet if click.get_current_context(silent=True) else True
    told: list[str] = []
    sink = _Sink(run, wanted, several)

    def on_word(words: str) -> None:
        if not quiet and words not in told:
            told.append(words)
            sink.notice(f"yurt: {words}")

    verbs.follow(index, run, sink, lines=lines, on_word=on_word)
    sink.end()


class _Sink:
    """Writes what comes: bytes as they are; with several runs, whole lines with the run's id before them;
    with --json, one envelope a piece."""

    def __init__(self, run: Run, wanted: Collection[str], several: bool) -> None:
        context = click.get_current_context(silent=True)
        self.json = context is not None and frame.current().json
        self.run, self.wanted, self.several = run, wanted, several
        self.held = {"out": b"", "err": b""}
        self.line_ended = True
        self.notices: list[str] = []

    def __call__(self, which: str, part: bytes) -> None:
        if which not in self.wanted:
            return
        if not self.json and not self.several:
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
            render.stream("log", LogLine(self.run.id, stream, line.decode(errors="replace")))
        else:
            self._write(which, f"[{self.run.id}] ".encode() + line + b"\n")

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
