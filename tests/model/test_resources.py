"""Parsing of durations, memory sizes and GPU counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yurt.model.resources import parse_gpus, parse_memory, parse_time


@pytest.mark.parametrize(
    ("written", "minutes"),
    [
        (90, 90),
        ("90", 90),
        (" 90 ", 90),
        ("90m", 90),
        ("2h", 120),
        ("2H", 120),
        ("1d", 1440),
        ("1h30m", 90),
        ("1d12h", 2160),
        ("30s", 1),
        ("60s", 1),
        ("61s", 2),
        ("12:00:00", 720),
        ("00:00:30", 1),
        ("100:00:00", 6000),
        ("90:00", 90),
        ("0:30", 1),
        ("1-12:00:00", 2160),
        ("1-12:30", 2190),
        ("1-12", 2160),
        ("2-0", 2880),
        ("3600000", 3600000),
    ],
)
def test_time(written: str | int, minutes: int) -> None:
    assert parse_time(written) == minutes


@pytest.mark.parametrize(
    "written", ["", "0", 0, "0m", "00:00:00", "-5", "soon", "1:2:3:4", "h", "1w", "2h 3", "1.5h", True]
)
def test_invalid_time(written: str | int) -> None:
    with pytest.raises(ValueError, match=r"^must be a positive duration such as 90 \(minutes\), 2h"):
        parse_time(written)


@given(st.integers(0, 40), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_all_notations_of_a_time_agree(days: int, hours: int, minutes: int, seconds: int) -> None:
    exact = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    forms = [
        f"{days}-{hours:02}:{minutes:02}:{seconds:02}",
        f"{days}d{hours}h{minutes}m{seconds}s",
        f"{days * 24 + hours}:{minutes:02}:{seconds:02}",
        f"{(days * 24 + hours) * 60 + minutes}:{seconds}",
    ]
    for form in forms if exact else []:
        assert 0 <= parse_time(form) * 60 - exact < 60


@pytest.mark.parametrize(
    ("written", "mb"),
    [
        (4096, 4096),
        ("4096", 4096),
        ("0", 0),
        ("512M", 512),
        ("512m", 512),
        ("1k", 1),
        ("1024K", 1),
        ("1025K", 2),
        ("8G", 8192),
        ("8g", 8192),
        ("8GB", 8192),
        ("8 GiB", 8192),
        ("8Gi", 8192),
        ("1.5G", 1536),
        ("2T", 2 * 1024 * 1024),
        ("", None),
        ("lots", None),
        ("-1", None),
        ("8P", None),
        (True, None),
    ],
)
def test_memory(written: str | int, mb: int | None) -> None:
    if mb is not None:
        assert parse_memory(written) == mb
        return
    with pytest.raises(ValueError, match=r"^must be a memory size such as 4096 \(MB\), 512M, 8G or 1T$"):
        parse_memory(written)


@given(st.integers(0, 10**9))
def test_units_of_memory_are_1024_apart(count: int) -> None:
    assert parse_memory(f"{count}G") == 1024 * parse_memory(f"{count}m") == 1024 * parse_memory(count)
    assert parse_memory(f"{count}t") == parse_memory(f"{1024 * count}G")
    assert 0 <= parse_memory(f"{count}k") * 1024 - count < 1024


@pytest.mark.parametrize(
    ("written", "found"),
    [
        (2, (None, 2)),
        ("2", (None, 2)),
        (0, (None, 0)),
        ("a100:2", ("a100", 2)),
        ("a100", ("a100", 1)),
        ("gpu:2", (None, 2)),
        ("gpu:a100:2", ("a100", 2)),
        ("nvidia_h100-80gb.x:4", ("nvidia_h100-80gb.x", 4)),
    ],
)
def test_gpus(written: str | int, found: tuple[str | None, int]) -> None:
    assert parse_gpus(written) == found


@pytest.mark.parametrize("written", ["", "-1", "a100:", "a100:x", "2:a100", "a b", True, 1.5])
def test_invalid_gpus(written: str | int) -> None:
    with pytest.raises(
        ValueError, match=r"^must be a number of GPUs such as 2, or a type and a number such as a100:2$"
    ):
        parse_gpus(written)
