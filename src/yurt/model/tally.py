"""How many tasks of a sweep are in which state, in few characters. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

ALIVE = ("running", "starting", "requeued")
WAITING = ("queued", "submitting", "held", "waiting", "unknown")
BAD = ("failed", "timeout", "out_of_memory", "node_failed", "lost")
ORDER = ("completed", *ALIVE, *WAITING, *BAD, "cancelled")
"""As they are said."""

GROUPS: tuple[tuple[str, Sequence[str], str], ...] = (
    ("completed", ("completed",), "━"),
    ("failed", BAD, "x"),
    ("cancelled", ("cancelled",), "x"),
    ("running", ALIVE, "╸"),
    ("queued", WAITING, "─"),
)
"""The parts of a bar from left to right: what has ended, what runs, what is to come."""

SHORTEST, LONGEST = 4, 20
"""Characters of a bar."""

GAP = "  "
"""Between a bar and its words."""


def words(tally: Mapping[str, int]) -> str:
    """Every state with its count: 37 completed, 2 running, 1 failed of 40."""
    return f"{', '.join(f'{count} {state}' for state, count in _said(tally))} of {sum(tally.values())}"


def brief(tally: Mapping[str, int], width: int) -> str:
    """The same as one glances at it, cut to what matters until it fits: 37/40 done, 1 failed."""
    choices = _briefs(tally)
    return next((text for text in choices if len(text) <= width), choices[-1][:width])


def bar(tally: Mapping[str, int], width: int) -> list[tuple[str, str]]:
    """A bar as wide as that: its parts, each with the state it stands for. No state that is there is left out."""
    counts = {name: sum(tally.get(state, 0) for state in states) for name, states, _mark in GROUPS}
    marks = {name: mark for name, _states, mark in GROUPS}
    return [(name, marks[name] * cells) for name, cells in _shares(counts, width).items()]


def drawn(tally: Mapping[str, int], width: int) -> tuple[list[tuple[str, str]], str]:
    """A bar and words that together fit a width; there is no bar where even the shortest words leave it no room."""
    for said in _briefs(tally):
        room = width - len(said) - len(GAP)
        if room >= SHORTEST:
            return bar(tally, min(room, LONGEST)), said
    return [], brief(tally, width)


def widest(tally: Mapping[str, int]) -> int:
    """The most room a drawing of it takes."""
    return LONGEST + len(GAP) + len(_briefs(tally)[0])


def _said(tally: Mapping[str, int]) -> list[tuple[str, int]]:
    known = [state for state in ORDER if tally.get(state)]
    return [(state, tally[state]) for state in [*known, *(each for each in tally if each not in ORDER)]]


def _briefs(tally: Mapping[str, int]) -> list[str]:
    """From the longest to the shortest."""
    done = f"{tally.get('completed', 0)}/{sum(tally.values())}"
    rest = [(state, count) for state, count in _said(tally) if state != "completed"]
    bad = sum(tally.get(state, 0) for state in BAD)
    failed = f", {bad} failed" if bad else ""
    whole = ", ".join([f"{done} done", *(f"{count} {state}" for state, count in rest)])
    return sorted({whole, f"{done} done{failed}", f"{done}{failed}", done}, key=len, reverse=True)


def _shares(counts: Mapping[str, int], width: int) -> dict[str, int]:
    """Cells of a bar for each count above zero, one at least, by the largest remainder."""
    there = {name: count for name, count in counts.items() if count}
    total = sum(there.values())
    if not total:
        return {}
    if len(there) >= width:
        return dict.fromkeys(list(there)[:width], 1)
    cells = {name: max(1, width * count // total) for name, count in there.items()}
    by_rest = sorted(there, key=lambda name: -(width * there[name] % total))
    for name in by_rest[: max(0, width - sum(cells.values()))]:
        cells[name] += 1
    while sum(cells.values()) > width:  # what the smallest were given more than their share, the largest has less
        cells[max(cells, key=lambda name: cells[name])] -= 1
    return cells
