"""Time limits that are not whole minutes."""

from __future__ import annotations

import pytest

from yurt.model import time_limit


@pytest.mark.parametrize(
    ("asked", "minutes", "here", "there"),
    [("90s", 2, 90, 120), ("1:30", 2, 90, 120), ("2m", 2, 120, 120), (2, 2, 120, 120), ("0:59", 1, 59, 60)],
)
def test_seconds(asked: str | int, minutes: int, here: int, there: int) -> None:
    assert time_limit.seconds("local", minutes, asked) == here
    assert time_limit.seconds("slurm", minutes, asked) == there


def test_another_source() -> None:
    assert time_limit.seconds("local", None, "90s") is None
    assert time_limit.seconds("slurm", 30, None) == 1800, "the default of a partition"
    assert time_limit.seconds("local", 5, "90s") == 300, "the context's, replaced since"


def test_rounding_is_reported() -> None:
    (text,) = time_limit.rounded("slurm", 2, "90s")
    assert text == "the time limit 90s is rounded up to 2 minutes, because the scheduler counts whole minutes"
    (text,) = time_limit.rounded("slurm", 1, "0:30")
    assert "to 1 minute," in text
    assert not [*time_limit.rounded("slurm", 2, "2m"), *time_limit.rounded("local", 2, "90s")]
    assert not time_limit.rounded("slurm", None, None)


@pytest.mark.parametrize("asked", ["UNLIMITED", "0", True, 1.5])
def test_a_record_with_an_odd_limit_can_be_shown(asked: object) -> None:
    assert time_limit.seconds("local", 90, asked) == 5400
