"""When a dev node saves, warns and reads its time limit."""

from __future__ import annotations

import pytest

from yurt.node import limits
from yurt.node.dev.schedule import Schedule

HOUR = 3600.0


def schedule(end: float | None = None, *, now: float = 0.0) -> Schedule:
    made = Schedule(now, 1800, 60)
    made.looked(now, end)
    return made


@pytest.mark.parametrize(
    ("end", "saved", "seconds", "expected"),
    [
        (None, 0.0, 1.0, (1800.0, "interval")),
        (8 * HOUR, 100.0, 1.0, (1900.0, "interval")),
        (2000.0, 0.0, 1.0, (1700.0, "limit")),
        (2000.0, 1700.0, 1.0, (1940.0, "limit")),
        (2000.0, 1700.0, 30.0, (1880.0, "limit")),  # saves are slow: the last one is earlier
        (2000.0, 1940.0, 1.0, (3740.0, "interval")),  # the signal at the end saves again
        (90.0, 0.0, 1.0, (30.0, "limit")),
    ],
)
def test_next_save(end: float | None, saved: float, seconds: float, expected: tuple[float, str]) -> None:
    made = schedule(end)
    made.saved(saved, seconds)
    assert made.next_save() == expected


def test_an_overdue_save_is_shown_as_due_now() -> None:
    made = schedule()
    made.saved(0.0, 1.0)
    assert (made.shown_next(100.0), made.shown_next(5000.0)) == (1800.0, 5000.0)


def test_failed_saves_are_repeated_with_growing_pauses() -> None:
    made = schedule(8 * HOUR)
    dues = []
    now = 1800.0
    for _ in range(7):
        made.failed(now)
        dues.append(made.next_save()[0] - now)
        now = made.next_save()[0]
    assert dues == [60, 120, 240, 480, 960, 1800, 1800]
    made.saved(now, 1.0)
    assert made.next_save() == (now + 1800, "interval")
    made.failed(8 * HOUR - 100)
    made.failed(8 * HOUR - 100)
    assert made.next_save()[0] == 8 * HOUR - 85


def test_warnings() -> None:
    made = schedule(HOUR)
    assert [made.warning(now) for now in (0.0, 1799.0, 1800.0, 1801.0, 3000.0, 3001.0)] == [
        None,
        None,
        30,
        None,
        10,
        None,
    ]
    made.looked(3100.0, 2 * HOUR)  # extended
    assert [made.warning(now) for now in (3100.0, 5400.0, 6600.0)] == [None, 30, 10]
    short = schedule(900.0)
    assert [short.warning(now) for now in (0.0, 300.0)] == [None, 10]


def test_looks_at_the_limit() -> None:
    made = schedule(HOUR)
    assert made.next_look() == 240
    made.looked(3400.0, HOUR)
    assert made.next_look() == 3480
    made.looked(3480.0, HOUR)
    assert made.next_look() == 3720


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1-02:03:04", 93784), ("02:03:04", 7384), ("03:04", 184), ("0:00", 0), ("UNLIMITED", None), ("", None)],
)
def test_times_of_slurm(text: str, expected: float | None) -> None:
    assert limits.seconds(text) == expected
