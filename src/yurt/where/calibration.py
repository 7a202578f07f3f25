"""Turns an expected wait into a range, from how earlier expectations came out. Pure.

A scheduler assumes that every job uses up its time limit and that no job of higher priority comes. So real starts are
earlier when jobs end before their limit, and later when others pass. Both differ between sites, so the range is made of
the errors of earlier expectations on the same context. Without any, a cautious range is used.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec

from yurt.model.run import Run, Status

TAIL = 0.05
"""The share of starts that may be earlier than the range, and the share that may be later."""

SCALE = 60.0
"""Seconds below which an error counts by its length, not by its ratio: schedulers look at the queue that often."""

PRIOR = (-7.0, -4.0, -2.5, -1.5, -0.8, -0.3, -0.1, 0.0, 0.2, 0.7)
"""Errors that are assumed before any are known: starts may be much earlier, and twice as late."""

TRUST = 3.0
"""With so many known errors, the assumed ones have half of their weight; with twice as many, a fifth."""

ENOUGH = 10
"""With so many known errors, a range need not contain the expected wait: some sites start jobs much earlier."""

MARGIN = 0.4
"""How much wider a range is than the known errors, in mean distances between them: a few do not show the extremes."""

WAITS = 5
"""The least number of recorded waits that widen a range without known errors."""


class Pair(msgspec.Struct, frozen=True):
    """An expected wait, the range that was shown, and the real wait, in seconds."""

    expected: float
    low: float
    high: float
    real: float

    @property
    def within(self) -> bool:
        return self.low <= self.real <= self.high


def span(expected: float, pairs: Sequence[Pair], waits: Sequence[float] = ()) -> tuple[float, float]:
    """Return a range for an expected wait that holds about nine times in ten.

    `pairs`: earlier expectations and real waits of the same place. `waits`: real waits without an expectation, which
    count only if there are few pairs.
    """
    errors = [_error(each.expected, each.real) for each in pairs]
    weight = 1 / (1 + (len(errors) / TRUST) ** 2)
    known = [*((error, 1.0) for error in errors), *((error, weight) for error in PRIOR)]
    margin = MARGIN * (max(errors) - min(errors)) / len(errors) if errors else 0.0
    least, most = _wait(expected, _at(known, TAIL) - margin), _wait(expected, _at(known, 1 - TAIL) + margin)
    if len(pairs) < WAITS <= len(waits):
        plain = [(each, 1.0) for each in waits]
        least, most = min(least, _at(plain, 2 * TAIL)), max(most, _at(plain, 1 - 2 * TAIL))
    if len(pairs) < ENOUGH:
        least, most = min(least, expected), max(most, expected)
    return least, max(most, SCALE)


def _error(expected: float, real: float) -> float:
    return math.log((real + SCALE) / (expected + SCALE))


def _wait(expected: float, error: float) -> float:
    return max(0.0, (expected + SCALE) * math.exp(error) - SCALE)


def _at(weighted: Iterable[tuple[float, float]], share: float) -> float:
    """Return the value below which a share of the weight lies."""
    ordered = sorted(weighted)
    total, sum_ = sum(weight for _value, weight in ordered), 0.0
    if share < 0.5:
        for value, weight in ordered:
            sum_ += weight
            if sum_ >= share * total:
                return value
    for value, weight in reversed(ordered):
        sum_ += weight
        if sum_ >= (1 - share) * total:
            return value
    return ordered[-1][0]


def real_wait(run: Run, status: Status, clock: float = 0.0) -> float | None:
    """Return how long a run waited in the queue; None if it has not started, or waited for something else too.

    Runs that depend on others, wait for a home sync, take part in a race, or were submitted or started several times
    do not count. `clock`: how far the clock of the site, which dates the start, is ahead of this machine's.
    """
    if status.submitted is None or status.started is None or run.after or run.home_sync or run.race:
        return None
    if status.restarts or status.retries or status.start > 1 or status.attempts > 1:
        return None
    return max(0.0, status.started - clock - status.submitted)
