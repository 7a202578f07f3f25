"""Prints the result of a verb as a JSON envelope or as text."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from yurt.cli import call
from yurt.errors import YurtError

if TYPE_CHECKING:
    from rich.console import Console

    from yurt.model.result import Result

ENVELOPE = 1
"""Version of the envelope; raised by a change that breaks readers."""


class Bug(YurtError):
    """An unexpected exception."""


def show(kind: str, data: Any, print_text: Callable[[], None], *, requested: bool = False) -> None:
    """Print a result: one envelope with --json, otherwise what `print_text` prints.

    With --quiet, text is printed only if it is `requested`: the output of `ps`, not a message that a run is submitted.
    """
    now = call.current()
    if now.json:
        _print_json({"yurt": ENVELOPE, "kind": kind, "data": data, "warnings": now.warnings})
        return
    if requested or not now.quiet:
        print_text()
    for warning in now.warnings:
        print(f"yurt: warning: {indented(warning)}", file=sys.stderr)


def result(found: Result[Any], print_text: Callable[[], None], *, requested: bool = False) -> int:
    """Print the result of a verb and return its exit code."""
    call.current().warnings += found.warnings
    show(found.kind, found.data, print_text, requested=requested)
    return found.exit_code


def error(fault: YurtError, *, as_json: bool, plain: bool = False) -> None:
    """Print an error: one envelope on stdout with --json, otherwise a sentence and a hint on stderr."""
    if as_json:
        # Arguments of the user may be invalid UTF-8, which JSON cannot contain.
        message, hint = (
            text.encode(errors="surrogateescape").decode(errors="backslashreplace")
            for text in (cut(fault.message), cut(fault.hint))
        )
        body = {"code": fault.code, "fault": fault.fault, "message": message, "hint": hint}
        _print_json({"yurt": ENVELOPE, "error": body})
        return
    colour = sys.stderr.isatty() and colours_wanted() and not plain
    red, dim, off = ("\033[31m", "\033[2m", "\033[0m") if colour else ("", "", "")
    print(f"{red}yurt:{off} {indented(fault.message)}", file=sys.stderr)
    if fault.hint:
        print(f"{dim}  hint:{off} {indented(fault.hint)}", file=sys.stderr)


def as_bug(error: Exception, arguments: list[str]) -> Bug:
    """Write an unexpected exception to a report file and return an error that names the file."""
    import traceback

    from yurt import __version__
    from yurt.config import paths

    text = f"yurt {__version__}, python {sys.version}\narguments: {arguments!r}\n\n"
    text += "".join(traceback.format_exception(error))
    summary = f"{type(error).__name__}: {error}".splitlines()[0]
    hint = "this is a bug; report it with the command that you ran"
    with contextlib.suppress(OSError, YurtError):
        file = paths.data_home() / "bug-report.txt"
        paths.write_private(file, text.encode(errors="backslashreplace"))
        hint = f"this is a bug; report it and attach `{file}`"
    return Bug(f"internal error: {summary}", code="bug", hint=hint)


def _print_json(envelope: dict[str, Any]) -> None:
    try:
        text = msgspec.json.encode(envelope).decode()
    except UnicodeEncodeError:  # names of files may be invalid UTF-8, which JSON cannot contain
        text = msgspec.json.encode(_valid(msgspec.to_builtins(envelope))).decode()
    if not text.isascii() or "\x7f" in text:
        import re

        # JSON allows these control characters, but a terminal obeys them.
        text = re.sub(r"[\x7f-\x9f]", lambda found: f"\\u{ord(found[0]):04x}", text)
    sys.stdout.write(text + "\n")


def _valid(value: Any) -> Any:
    """Return a value in which invalid bytes of texts are shown as `\\xNN`."""
    if isinstance(value, str):
        return value.encode(errors="surrogateescape").decode(errors="backslashreplace")
    if isinstance(value, dict):
        return {_valid(key): _valid(each) for key, each in value.items()}
    return [_valid(each) for each in value] if isinstance(value, list) else value


def console() -> Console:
    """Return a console on stdout: as wide as the terminal, or without truncation if stdout is a pipe."""
    from rich import console

    class Console(console.Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would exit with its own exit code

    if sys.stdout.isatty():
        return Console(highlight=False, color_system="auto" if colours() else None)
    return Console(highlight=False, no_color=True, width=10_000, force_terminal=False)


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numbers: Sequence[str] = (),
    folds: Sequence[str] = (),
    bad: Collection[str] = (),
) -> None:
    """Print a table that fits the terminal; on a narrow one, the columns in `folds` wrap. Cells in `bad` are red.

    With --plain, each row is a line of words.
    """
    if call.plain():
        for row in rows:
            record(columns, row)
        return
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        side: Literal["left", "right"] = "right" if column in numbers else "left"
        made.add_column(column, justify=side, overflow="fold", no_wrap=bool(folds) and column not in folds)
    for row in rows:
        # Not markup: a site may have chosen the text.
        made.add_row(*(Text(plain(cell), style="red" if cell in bad else "") for cell in row))
    console().print(made)


def record(columns: Sequence[str], row: Sequence[str]) -> None:
    """Print a row of a table in words: `column: value; column: value`, without empty cells."""
    print("; ".join(f"{column}: {plain(cell)}" for column, cell in zip(columns, row, strict=True) if cell))


def labelled(label: str, text: str, room: int) -> str:
    """Return a line with a label, `room` columns wide, and a text; with --plain, a colon is between them."""
    return f"{label.strip(': ')}: {text}" if label and call.plain() else f"{label:{room}}{text}"


def fact(label: str, text: str, room: int) -> None:
    """Print a label, `room` columns wide, and a text; on a terminal the text wraps between words, in its own column."""
    lines = [plain(text)]
    if visual():
        import textwrap

        width = max(20, terminal_columns() - room)
        lines = textwrap.wrap(lines[0], width, break_long_words=False, break_on_hyphens=False)
    for at, line in enumerate(lines):
        print(labelled("" if at else label, line, room))


def visual() -> bool:
    """Return whether stdout is a terminal whose user sees it: it gets bars, and tables that fit its width."""
    return sys.stdout.isatty() and not call.plain()


def redraws() -> bool:
    """Return whether a line on stderr can be drawn again and again: it is a terminal with cursor moves."""
    return sys.stderr.isatty() and not call.plain() and os.environ.get("TERM") not in NO_CONTROL


def terminal_columns() -> int:
    """Return the width of the terminal on stdout; a large number if stdout is a pipe, and with --plain."""
    if not visual():
        return 10_000
    import shutil

    return shutil.get_terminal_size().columns


def colours() -> bool:
    """Return whether stdout may contain colour codes."""
    return visual() and colours_wanted()


def colours_wanted() -> bool:
    """Return whether the user's environment allows colours; see no-color.org."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") not in NO_CONTROL


NO_CONTROL = ("dumb", "unknown")
"""Values of TERM of terminals without colours and cursor moves."""


def short(text: str, room: int) -> str:
    """Return a text as one line of at most `room` columns, truncated with an ellipsis."""
    shown = plain(text)
    if width(shown) > room:
        while width(shown) > room - 1:
            shown = shown[: -max(1, (width(shown) - room) // 2)]
        shown += "…"
    return shown


def width(text: str) -> int:
    """Return the number of terminal columns that a text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def plain(text: str) -> str:
    """Return a text as one line, with control characters replaced."""
    return text if text.isprintable() else "".join(char if char.isprintable() else "�" for char in text)


LONGEST_MESSAGE = 10_000
"""Characters of a message: a file of a project or an answer of a site may be quoted in it."""


def cut(text: str) -> str:
    """Return a message without the middle of a very long one."""
    if len(text) <= LONGEST_MESSAGE:
        return text
    most = LONGEST_MESSAGE // 2
    return f"{text[:most]} ... ({len(text) - 2 * most:,} characters are left out) ... {text[-most:]}"


def indented(text: str) -> str:
    """Return a message for the terminal. Its further lines are indented: a name in it cannot pose as a message."""
    first, *more = escaped(cut(text)).split("\n")
    return "\n".join([first, *(each if each.startswith("  ") else f"  {each}" for each in more)])


def escaped(text: str) -> str:
    """Return a message with control characters written as \\x1b: a site may have chosen them."""
    if text.isprintable():
        return text
    return "".join(
        char
        if char.isprintable() or char == "\n" or "\ud800" <= char <= "\udfff"
        else char.encode("unicode_escape").decode()
        for char in text
    )


def verbatim(content: bytes) -> None:
    """Write a file or another long text to stdout: the exact bytes, or what is safe on a terminal."""
    sys.stdout.flush()
    if sys.stdout.isatty():
        from yurt.cli.terminal import safe

        content = safe(content, plain=call.plain())
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def codes(style: str) -> tuple[str, str]:
    """Return the escape codes that turn a style on and off; empty for an unknown style."""
    number = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "cyan": 36}.get(style)
    return (f"\033[{number}m", "\033[0m") if number else ("", "")


def stream(kind: str, data: Any) -> None:
    """Print one envelope of a stream immediately."""
    _print_json({"yurt": ENVELOPE, "kind": kind, "data": data, "warnings": []})
    sys.stdout.flush()


def command_line(command: Sequence[str]) -> str:
    """Return a command as typed in a shell."""
    return shlex.join(command)


def value(each: Any) -> str:
    """Return a setting or parameter as text: strings unchanged, other values as JSON."""
    return each if isinstance(each, str) else msgspec.json.encode(each).decode()


LONGEST_VALUE = 200
"""Maximum number of columns of a value in a table or a list; --json and --csv have all of it."""


def readable(each: Any) -> str:
    """Return a setting or parameter as text for people: at most LONGEST_VALUE columns, pickled objects in words."""
    from yurt.model.params import has_pickled, summary

    return short(summary(each) if has_pickled(each) else value(each), LONGEST_VALUE)


def span(seconds: float) -> str:
    """Return a duration in short form: 42s, 7m, 3h12m, 5d."""
    count = max(0, int(seconds))
    if count < 120:
        return f"{count}s"
    if count <= 3600:
        return f"{count // 60}m"
    if count < 48 * 3600:
        return f"{count // 3600}h{count % 3600 // 60:02}m"
    return f"{count // 86400}d"


def moment(at: float | None) -> str:
    """Return a timestamp in local time; empty for None."""
    import time

    if at is None:
        return ""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
    except (OverflowError, ValueError, OSError):  # a site can record any number
        return "?"


def with_reason(state: str, reason: str) -> str:
    """Return a state and its reason; the reason alone if it begins with the state: cancelled before it started."""
    if not new_reason(state, reason):
        return state
    return reason if reason.startswith((f"{state} ", f"{state};")) else f"{state}: {reason}"


def new_reason(state: str, reason: str) -> str:
    """Return a reason for display next to its state; empty if it only repeats the state."""
    return "" if reason == state else reason


def count(number: int, noun: str) -> str:
    """Return a number with its noun, which takes an s in the plural: 1 file, 3 files."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def amount(count: int) -> str:
    """Return a number of bytes with a decimal unit: 512 B, 1.2 MB."""
    from yurt.model import sizes

    return sizes.amount(count)


def size(count: int) -> str:
    """Return a number of bytes in MiB."""
    return f"{count / (1 << 20):.0f} MiB"
