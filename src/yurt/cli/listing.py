"""A long table, one line for each row, whose columns share the width of the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from yurt.cli import call, render


class Drawn(Protocol):
    """A table cell that adapts to the width of its column."""

    @property
    def widest(self) -> int:
        """The maximum useful width."""

    def draw(self, width: int, *, paint: bool) -> str:
        """Return the text in at most `width` columns, with colour codes only if `paint` is set."""


def listing(
    columns: Sequence[str],
    rows: Sequence[Sequence[str | Drawn]],
    *,
    styles: Sequence[str],
    styled: str,
    shrinks: Sequence[str] = (),
    drops: Sequence[str] = (),
    numbers: Sequence[str] = (),
    wide: bool = False,
    notes: Sequence[str] = (),
) -> None:
    """Print a long table, one line for each row: on a terminal the columns in `shrinks` share the remaining width.

    Columns in `drops` are left out, the first of them first, as long as the table is too wide.
    `notes` are sentences about the rows, printed below each row in lines of their own. With --plain, each row is a
    line of words.
    Does not use rich, which takes a second for ten thousand lines.
    """
    if call.plain():
        for row, note in zip(rows, notes or [""] * len(rows), strict=True):
            words = [cell if isinstance(cell, str) else cell.draw(cell.widest, paint=False).rstrip() for cell in row]
            render.record([*columns, "note"], [*words, note])
        return
    widths = [max(render.width(column), *(_wanted(row[at]) for row in rows)) for at, column in enumerate(columns)]
    if render.visual() and not wide:
        widths = _fitted(columns, _without(columns, widths, shrinks, drops), shrinks)
    paint = render.colours()
    bold = render.codes("bold") if paint else ("", "")
    titles = [_cell(name, room, name in numbers) for name, room in zip(columns, widths, strict=True) if room]
    print(bold[0] + "  ".join(titles).rstrip() + bold[1])
    for row, style, note in zip(rows, styles, notes or [""] * len(rows), strict=True):
        on, off = render.codes(style) if paint else ("", "")
        cells = [
            (name, _cell(cell, room, name in numbers) if isinstance(cell, str) else cell.draw(room, paint=paint))
            for name, cell, room in zip(columns, row, widths, strict=True)
            if room
        ]
        print("  ".join(f"{on}{cell}{off}" if name == styled else cell for name, cell in cells).rstrip())
        if note:
            render.fact("", note, 2)


def _wanted(cell: str | Drawn) -> int:
    return render.width(cell) if isinstance(cell, str) else cell.widest


READABLE = 12
"""The width that a column in `shrinks` keeps while others can be left out."""

LEAST = 6
"""Minimum width of a column; a narrower one is left out."""


def _without(columns: Sequence[str], widths: Sequence[int], shrinks: Sequence[str], drops: Sequence[str]) -> list[int]:
    """Return the widths, 0 for columns in `drops` that are left out."""
    kept = list(widths)
    for name in drops:
        needed = sum(
            (min(width, READABLE) if column in shrinks else width) + 2
            for column, width in zip(columns, kept, strict=True)
            if width
        )
        if needed - 2 > render.terminal_columns() and name in columns:
            kept[columns.index(name)] = 0
    return kept


def _fitted(columns: Sequence[str], widths: list[int], shrinks: Sequence[str]) -> list[int]:
    """Return widths that fit the terminal; 0 for columns left out: the last in `shrinks` first, the first never."""
    loose = [at for at, column in enumerate(columns) if column in shrinks and widths[at]]
    fitted = [width if at not in loose else 0 for at, width in enumerate(widths)]
    room = render.terminal_columns() + 2 - sum(width + 2 for width in fitted if width)
    while loose and room < sum(min(widths[at], LEAST) + 2 for at in loose):
        if loose != [0] or not any(fitted):
            loose.pop()
        else:  # without its first column, a row says nothing
            last = max(at for at, width in enumerate(fitted) if width)
            room += fitted[last] + 2
            fitted[last] = 0
    room -= 2 * len(loose)
    for left, at in zip(range(len(loose), 0, -1), sorted(loose, key=lambda at: widths[at]), strict=True):
        fitted[at] = min(widths[at], room // left)
        room -= fitted[at]
    return fitted


def _cell(text: str, room: int, right: bool = False) -> str:
    """Return a text as wide as its column, truncated or padded, without control characters."""
    shown = render.short(text, room)
    filling = " " * (room - render.width(shown))
    return filling + shown if right else shown + filling
