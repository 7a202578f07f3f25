"""Bytes, total, rate and time left of a transfer, as one line."""

from __future__ import annotations

import pytest

from yurt.model.progress import Event, Rate, duration
from yurt.transport.rsync_report import Total


def lines(*points: tuple[float, int], total: int = 0) -> list[str]:
    rate = Rate()
    return [rate.line(Event("fetching x", done, total, bytes=True), now) for now, done in points]


def test_bytes_total_rate_and_time_left() -> None:
    found = lines((0, 0), (1, 2_000_000), (2, 4_000_000), (60, 11_000_000), (61, 12_000_000), total=12_000_000)
    assert found == [
        "fetching x: 0.0 of 12.0 MB",
        "fetching x: 2.0 of 12.0 MB, 2.0 MB/s, 5 s left",
        "fetching x: 4.0 of 12.0 MB, 2.0 MB/s, 4 s left",
        "fetching x: 11.0 of 12.0 MB",
        "fetching x: 12.0 of 12.0 MB, 1.0 MB/s, 0 s left",
    ]


def test_an_unknown_total_and_other_units() -> None:
    assert lines((0, 0), (1, 50_000)) == ["fetching x: 0 bytes", "fetching x: 50.0 kB, 50.0 kB/s"]
    assert lines((0, 0), (1, 10**9), total=3 * 10**9)[1] == "fetching x: 1.0 of 3.0 GB, 1000.0 MB/s, 2 s left"


def test_a_continued_transfer_does_not_count_what_was_there() -> None:
    assert lines((0, 9_000_000), (1, 10_000_000), total=12_000_000)[1].endswith("1.0 MB/s, 2 s left")


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (99, "99 s"), (240, "4 min"), (9000, "2.5 h")])
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_the_total_of_rsync_is_narrowed_down() -> None:
    total, size = Total(), 123_456_789
    found = [total.after(done, done * 100 // size) for done in range(0, size, 1_000_003)]
    assert found[0] == 0 and abs(found[60] / size - 1) < 0.02 and abs(found[-1] / size - 1) < 0.01
    assert total.after(3 * size, 50) == 6 * size, "rsync has found more files"
