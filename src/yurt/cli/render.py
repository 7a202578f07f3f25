"""Turns what a verb returned into a JSON envelope or into text for a person."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from yurt.cli import app
from yurt.errors import YurtError

if TYPE_CHECKING:
    from rich.console import Console

    from yurt.verbs.result import Result

ENVELOPE = 1
"""Version of the envelope; a change that breaks a reader raises it."""


class Bug(YurtError):
    """An exception nobody foresaw."""


def show(kind: str, data: Any, for_people: Callable[[], None], *, asked: bool = False) -> None:
    """Print a result: one envelope with --json, else whatever `for_people` prints.

    What a person `asked` to see is printed with --quiet too; word of what was done is not.
    """
    now = app.current()
    if now.json:
        _print_json({"yurt": ENVELOPE, "kind": kind, "data": data, "warnings": now.warnings})
        return
    if asked or not now.quiet:
        for_people()
    for warning in now.warnings:
        print(f"yurt: warning: {warning}", file=sys.stderr)


def result(found: Result[Any], for_people: Callable[[], None], *, asked: bool = False) -> int:
    """Print what a verb returned; returns its exit code."""
    app.current().warnings += found.warnings
    show(found.kind, found.data, for_people, asked=asked)
    return found.exit_code


def error(fault: YurtError, *, as_json: bool) -> None:
    """Print an error: one envelope on stdout with --json, else a sentence and a hint on stderr."""
    if as_json:
        words = fault.message, fault.hint
        # What a user typed may be no text; JSON holds nothing else.
        said, hint = (text.encode(errors="surrogateescape").decode(errors="backslashreplace") for text in words)
        body = {"code": fault.code, "fault": fault.fault, "message": said, "hint": hint}
        _print_json({"yurt": ENVELOPE, "error": body})
        return
    colour = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    red, dim, plain = ("\033[31m", "\033[2m", "\033[0m") if colour else ("", "", "")
    print(f"{red}yurt:{plain} {fault.message}", file=sys.stderr)
    if fault.hint:
        print(f"{dim}  hint:{plain} {fault.hint}", file=sys.stderr)


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


class Drawn(Protocol):
    """A cell that is drawn for the room it gets."""

    @property
    def widest(self) -> int:
        """The most columns it makes use of."""

    def draw(self, width: int, *, paint: bool) -> str:
        """It, in as many columns as that or fewer. May hold colours if it is to `paint`; else it is plain text."""


def listing(
    columns: Sequence[str],
    rows: Sequence[Sequence[str | Drawn]],
    *,
    styles: Sequence[str],
    styled: str,
    shrinks: Sequence[str] = (),
    numbers: Sequence[str] = (),
    wide: bool = False,
) -> None:
    """Print a long list, a line each: on a terminal the columns in `shrinks` share what width is left.

    Not rich's table: it would take a second for ten thousand lines.
    """
    terminal = sys.stdout.isatty()
    widths = [max(width(column), *(_wanted(row[at]) for row in rows)) for at, column in enumerate(columns)]
    if terminal and not wide:
        widths = _fitted(columns, widths, shrinks)
    paint = colours()
    bold = codes("bold") if paint else ("", "")
    titles = [_cell(name, room, name in numbers) for name, room in zip(columns, widths, strict=True) if room]
    print(bold[0] + "  ".join(titles).rstrip() + bold[1])
    for row, style in zip(rows, styles, strict=True):
        on, off = codes(style) if paint else ("", "")
        cells = [
            (name, _cell(cell, room, name in numbers) if isinstance(cell, str) else cell.draw(room, paint=paint))
            for name, cell, room in zip(columns, row, widths, strict=True)
            if room
        ]
        print("  ".join(f"{on}{cell}{off}" if name == styled else cell for name, cell in cells).rstrip())


def terminal_columns() -> int:
    """How wide standard output is; in a pipe nothing is cut short."""
    import shutil

    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000


def colours() -> bool:
    """Whether standard output may have some."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _wanted(cell: str | Drawn) -> int:
    return width(cell) if isinstance(cell, str) else cell.widest


LEAST = 6
"""A column narrower than this says nothing."""


def _fitted(columns: Sequence[str], widths: list[int], shrinks: Sequence[str]) -> list[int]:
    """Widths with which a line fits the terminal; 0 for columns that do not, the last of `shrinks` first."""
    loose = [at for at, column in enumerate(columns) if column in shrinks]
    fitted = [width if at not in loose else 0 for at, width in enumerate(widths)]
    room = terminal_columns() + 2 - sum(width + 2 for width in fitted if width)
    while loose and room < sum(min(widths[at], LEAST) + 2 for at in loose):
        loose.pop()
    room -= 2 * len(loose)
    for left, at in zip(range(len(loose), 0, -1), sorted(loose, key=lambda at: widths[at]), strict=True):
        fitted[at] = min(widths[at], room // left)
        room -= fitted[at]
    return fitted


def _cell(text: str, room: int, right: bool = False) -> str:
    """A text as wide as its column: cut short, or filled up; nothing in it moves the cursor."""
    shown = short(text, room)
    filling = " " * (room - width(shown))
    return filling + shown if right else shown + filling


def short(text: str, room: int) -> str:
    """A text that takes no more columns than that, and is one line."""
    shown = plain(text)
    if width(shown) > room:
        while width(shown) > room - 1:
            shown = shown[: -max(1, (width(shown) - room) // 2)]
        shown += "…"
    return shown


def width(text: str) -> int:
    """Columns of a terminal that a text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def plain(text: str) -> str:
    """A text of one line, with nothing in it that a terminal would obey."""
    return text if text.isprintable() else "".join(letter if letter.isprintable() else "�" for letter in text)


def codes(style: str) -> tuple[str, str]:
    number = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "cyan": 36}.get(style)
    return (f"\033[{number}m", "\033[0m") if number else ("", "")


def stream(kind: str, data: Any) -> None:
    """One envelope of many, at once."""
    _print_json({"yurt": ENVELOPE, "kind": kind, "data": data, "warnings": []})
    sys.stdout.flush()


def words(command: Sequence[str]) -> str:
    """A command as one would type it."""
    import shlex

    return " ".join(shlex.quote(word) for word in command)


def value(each: Any) -> str:
    return each if isinstance(each, str) else msgspec.json.encode(each).decode()


def span(seconds: float) -> str:
    """A length of time in a few letters: 42s, 7m, 3h12m, 5d."""
    count = max(0, int(seconds))
    if count < 120:
        return f"{count}s"
    if count < 7200:
        return f"{count // 60}m"
    if count < 48 * 3600:
        return f"{count // 3600}h{count % 3600 // 60:02}m"
    return f"{count // 86400}d"


def moment(at: float | None) -> str:
    """A time as the user's clock shows it; empty for none."""
    import time

    return "" if at is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def amount(count: int) -> str:
    """A number of bytes, small ones too."""
    for unit in ("B", "KB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 10 else f"{count:.1f} {unit}"
        count /= 1000  # type: ignore[assignment]
    return f"{count:.1f} GB"


def size(count: int) -> str:
    """A number of bytes in words."""
    return f"{count / (1 << 20):.0f} MiB"
