"""Bars of counts on a terminal; the same counts in words with --plain and in a pipe."""

from __future__ import annotations

from collections.abc import Sequence

from yurt.cli import render

SHORTEST, LONGEST = 4, 16
"""Minimum and maximum width of a bar, in characters."""

Part = tuple[str, int, str, str]
"""A part of a bar: its name, its count, its character and its colour."""


def bar(parts: Sequence[Part], room: int, *, paint: bool) -> str:
    """Return a bar of `room` columns; with --plain, or if stdout is a pipe, the counts in words."""
    from yurt.model.tally import shares

    if not render.visual():
        return words(parts)
    cells = shares({name: count for name, count, _mark, _style in parts}, room)
    made = ""
    for name, _count, mark, style in parts:
        on, off = render.codes(style) if paint else ("", "")
        made += f"{on}{mark * cells[name]}{off}" if cells.get(name) else ""
    return made


def words(parts: Sequence[Part]) -> str:
    """Return every count in words: 3 idle, 1 down."""
    return ", ".join(f"{count} {render.plain(name)}" for name, count, _mark, _style in parts if count) or "none"


class BarCell:
    """A table cell with a bar and the counts in words; in a narrow column, a bar and the sum."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts

    @property
    def widest(self) -> int:
        return len(words(self.parts)) + (LONGEST + 1 if render.visual() and self.parts else 0)

    def draw(self, width: int, *, paint: bool) -> str:
        total = str(sum(count for _name, count, _mark, _style in self.parts))
        for text in (words(self.parts), total):
            room = min(LONGEST, width - len(text) - 1)
            if render.visual() and room >= SHORTEST and self.parts:
                return f"{bar(self.parts, room, paint=paint)} {text}" + " " * (width - room - 1 - len(text))
        return render.short(words(self.parts), width).ljust(width)
