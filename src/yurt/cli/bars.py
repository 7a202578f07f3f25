"""Bars of counts on a terminal; the same counts in words with --plain and in a pipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from yurt.cli import render

STYLES = {
    "completed": "green",
    "running": "cyan",
    "starting": "cyan",
    "failed": "red",
    "timeout": "red",
    "out_of_memory": "red",
    "node_failed": "red",
    "lost": "red",
    "cancelled": "dim",
    "waiting": "yellow",
    "submitting": "yellow",
    "unknown": "yellow",
    "held": "yellow",
}


LEGIBLE = 12
"""A reason is shown if it has at least this many columns, or all that it needs."""


class TallyBar:
    """A bar of states followed by text, as wide as the column allows; only text in a pipe and with --plain.

    The bar is shortened for the reason, and the reason left out if it has too little room.
    """

    def __init__(self, tally: Mapping[str, int], reason: str = "") -> None:
        self.tally = tally
        self.reason = f": {reason}" if reason else ""

    @property
    def widest(self) -> int:
        from yurt.model import tally

        own = tally.widest(self.tally) if render.visual() else len(tally.words(self.tally))
        return own + render.width(self.reason)

    def draw(self, width: int, *, paint: bool) -> str:
        from yurt.model import tally

        if not render.visual():
            return render.short(tally.words(self.tally) + self.reason, width)
        bar, text = tally.drawn(self.tally, width)
        if not bar:
            return render.short(text + self.reason, width)
        if self.reason:
            room = width - len(tally.GAP) - len(text)
            shortest = render.width(self.reason) + tally.SHORTEST
            if room >= min(shortest, LEGIBLE + tally.SHORTEST):
                bar = tally.bar(self.tally, min(tally.LONGEST, max(tally.SHORTEST, room - render.width(self.reason))))
                text += render.short(self.reason, room - sum(len(part) for _state, part in bar))
        return "".join(_painted(state, part, paint=paint) for state, part in bar) + tally.GAP + text


def _painted(state: str, part: str, *, paint: bool) -> str:
    on, off = render.codes(STYLES.get(state, "dim")) if paint else ("", "")
    return f"{on}{part}{off}"


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
