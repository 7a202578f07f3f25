"""The states of a sweep's tasks as a bar with text, and the colours of states."""

from __future__ import annotations

from collections.abc import Mapping

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
