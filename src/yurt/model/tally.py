"""Summarizes the states of a sweep's tasks in a short text or bar. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

ALIVE = ("running", "starting", "requeued")
WAITING = ("queued", "submitting", "held", "waiting", "unknown")
BAD = ("failed", "timeout", "out_of_memory", "node_failed", "lost")
ORDER = ("completed", *ALIVE, *WAITING, *BAD, "cancelled")
"""The order of states in texts."""

GROUPS: tuple[tuple[str, Sequence[str], str], ...] = (
    ("completed", ("completed",), "━"),
    ("failed", BAD, "x"),
    ("cancelled", ("cancelled",), "x"),
    ("running", ALIVE, "╸"),
    ("queued", WAITING, "─"),
)
"""The parts of a bar from left to right: finished, running, pending."""

SHORTEST, LONGEST = 4, 20
"""Minimum and maximum width of a bar, in characters."""

GAP = "  "
"""Space between a bar and its text."""


def words(tally: Mapping[str, int]) -> str:
    """Return every state with its count: 37 completed, 2 running, 1 failed of 40."""
    return f"{', '.join(f'{count} {state}' for state, count in _ordered(tally))} of {sum(tally.values())}"


def main_reason(ended: Iterable[tuple[str, str]]) -> str:
    """Return the most frequent reason of failed tasks, given as pairs of state and reason; empty if there is none."""
    counts = Counter(reason for state, reason in ended if state in BAD and reason)
    return min(counts, key=lambda reason: (-counts[reason], reason), default="")


def brief(tally: Mapping[str, int], width: int) -> str:
    """Return a summary that fits the width, shortened to the essentials: 37/40 done, 1 failed."""
    choices = _briefs(tally)
    return next((text for text in choices if len(text) <= width), choices[-1][:width])


def bar(tally: Mapping[str, int], width: int) -> list[tuple[str, str]]:
    """Return the parts of a bar of that width, each with its state. Every state with a task gets at least one cell."""
    counts = {name: sum(tally.get(state, 0) for state in states) for name, states, _mark in GROUPS}
    marks = {name: mark for name, _states, mark in GROUPS}
    return [(name, marks[name] * cells) for name, cells in shares(counts, width).items()]


def drawn(tally: Mapping[str, int], width: int) -> tuple[list[tuple[str, str]], str]:
    """Return a bar and a text that together fit the width; no bar if even the shortest text leaves no room for it."""
    for text in _briefs(tally):
        room = width - len(text) - len(GAP)
        if room >= SHORTEST:
            return bar(tally, min(room, LONGEST)), text
    return [], brief(tally, width)


def widest(tally: Mapping[str, int]) -> int:
    """Return the maximum width of bar and text."""
    return LONGEST + len(GAP) + len(_briefs(tally)[0])


def _ordered(tally: Mapping[str, int]) -> list[tuple[str, int]]:
    known = [state for state in ORDER if tally.get(state)]
    return [(state, tally[state]) for state in [*known, *(each for each in tally if each not in ORDER)]]


def _briefs(tally: Mapping[str, int]) -> list[str]:
    """Return summaries from the longest to the shortest."""
    done = f"{tally.get('completed', 0)}/{sum(tally.values())}"
    rest = [(state, count) for state, count in _ordered(tally) if state != "completed"]
    bad = sum(tally.get(state, 0) for state in BAD)
    failed = f", {bad} failed" if bad else ""
    longest = ", ".join([f"{done} done", *(f"{count} {state}" for state, count in rest)])
    return sorted({longest, f"{done} done{failed}", f"{done}{failed}", done}, key=len, reverse=True)


def shares(counts: Mapping[str, int], width: int) -> dict[str, int]:
    """Distribute the cells of a bar by largest remainder; every count above zero gets at least one."""
    present = {name: count for name, count in counts.items() if count}
    total = sum(present.values())
    if not total:
        return {}
    if len(present) >= width:
        return dict.fromkeys(list(present)[:width], 1)
    cells = {name: max(1, width * count // total) for name, count in present.items()}
    by_rest = sorted(present, key=lambda name: -(width * present[name] % total))
    for name in by_rest[: max(0, width - sum(cells.values()))]:
        cells[name] += 1
    while sum(cells.values()) > width:  # the largest parts give up the cells that the smallest received
        cells[max(cells, key=lambda name: cells[name])] -= 1
    return cells
