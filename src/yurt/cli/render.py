"""Turns what a verb returned into a JSON envelope or into text for a person."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from yurt.cli import frame
from yurt.errors import YurtError

if TYPE_CHECKING:
    from rich.console import Console

ENVELOPE = 1
"""Version of the envelope; a change that breaks a reader raises it."""


class Bug(YurtError):
    """An exception nobody foresaw."""


def show(kind: str, data: Any, for_people: Callable[[], None], *, asked: bool = False) -> None:
    """Print a result: one envelope with --json, else whatever `for_people` prints.

    What a person `asked` to see is printed with --quiet too; word of what was done is not.
    """
    now = frame.current()
    if now.json:
        _print_json({"yurt": ENVELOPE, "kind": kind, "data": data, "warnings": now.warnings})
        return
    if asked or not now.quiet:
        for_people()
    for warning in now.warnings:
        print(f"yurt: warning: {warning}", file=sys.stderr)


def error(fault: YurtError, *, as_json: bool) -> None:
    """Print an error: one envelope on stdout with --json, else a sentence and a hint on stderr."""
    if as_json:
        body = {"code": fault.code, "fault": fault.fault, "message": fault.message, "hint": fault.hint}
        _print_json({"yurt": ENVELOPE, "error": body})
        return
    colour = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    red, dim, plain = ("\033[31m", "\033[2m", "\033[0m") if colour else ("", "", "")
    print(f"{red}yurt:{plain} {fault.message}", file=sys.stderr)
    if fault.hint:
        print(f"{dim}  try:{plain} {fault.hint}", file=sys.stderr)


def as_bug(error: Exception, arguments: list[str]) -> Bug:
    """Write an unforeseen exception into a report file, and make an error that names the file."""
    import traceback

    from yurt import __version__
    from yurt.config import paths

    text = f"yurt {__version__}, python {sys.version}\narguments: {arguments!r}\n\n"
    text += "".join(traceback.format_exception(error))
    summary = f"{type(error).__name__}: {error}".splitlines()[0]
    try:
        file = paths.data_home() / "bug-report.txt"
        paths.write_private(file, text.encode(errors="backslashreplace"))
        hint = f"please report it with the file {file}"
    except OSError:
        hint = "please report it"
    return Bug(f"a bug in yurt: {summary}", code="bug", hint=hint)


def _print_json(envelope: dict[str, Any]) -> None:
    sys.stdout.write(msgspec.json.encode(envelope).decode() + "\n")


def console() -> Console:
    """Where text for people goes. On a terminal as wide as it is; in a pipe nothing is cut short."""
    from rich import console

    class Console(console.Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would leave with an exit code of its own

    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(highlight=False, no_color=True, width=10_000, force_terminal=False)


def table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[str] = (), folds: Sequence[str] = ()
) -> None:
    """Print a table sized to the terminal; where it is narrow, only the columns in `folds` go over several lines."""
    from rich.table import Table

    made = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        side: Literal["left", "right"] = "right" if column in numbers else "left"
        made.add_column(column, justify=side, overflow="fold", no_wrap=bool(folds) and column not in folds)
    for row in rows:
        made.add_row(*row)
    console().print(made)


def size(count: int) -> str:
    """A number of bytes in words."""
    return f"{count / (1 << 20):.0f} MiB"
