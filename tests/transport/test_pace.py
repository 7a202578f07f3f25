"""An upload keeps little data in the queue of a slow link, and fills a fast one. Simulated links, no clock."""

from __future__ import annotations

import pytest

from yurt.transport.pace import LEAST, MOST, PIECE, Pace


def simulate(rate: float, trip: float, size: int) -> tuple[float, float]:
    """Upload over a link; return the seconds it took, and the longest queue in seconds after the first second."""
    pace, now, free, longest = Pace(0), 0.0, 0.0, 0.0
    reports: list[tuple[float, int]] = []
    while (pace.reported or 0) < size:
        while pace.written < size and (count := min(PIECE, pace.allowance(), size - pace.written)):
            pace.wrote(count, now)
            free = max(free, now) + count / rate
            reports.append((free + trip, pace.written))
            if now > 1:
                longest = max(longest, free - now)
        now, written = reports.pop(0)
        pace.heard(written, now)
    return now, longest


@pytest.mark.parametrize("trip", [0.001, 0.02, 0.1, 0.3])
@pytest.mark.parametrize("rate", [3e5, 2e6, 2e7])
def test_a_short_queue_and_the_full_rate(rate: float, trip: float) -> None:
    took, longest = simulate(rate, trip, int(rate * 30))
    assert took < 30 * 1.25
    assert longest < max(0.5, 2 * LEAST / rate)


def test_limits() -> None:
    pace = Pace(0)
    assert pace.allowance() == LEAST
    for number in range(1, 200):
        pace.wrote(MOST, number / 10)
        pace.heard(number * MOST, number / 10 + 0.01)
    assert pace.allowance() == MOST


def test_a_continued_upload_begins_where_the_receiver_is() -> None:
    pace = Pace(None)
    assert pace.allowance() == 0
    pace.heard(5000, 1.0)
    assert (pace.written, pace.reported, pace.allowance()) == (5000, 5000, LEAST)
