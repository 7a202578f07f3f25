"""Durations as tables show them."""

from __future__ import annotations

import pytest

from yurt.cli.render import span


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (119, "119s"), (120, "2m"), (3600, "60m"), (3660, "1h01m"), (7199, "1h59m"), (172800, "2d")],
)
def test_span(seconds: float, text: str) -> None:
    assert span(seconds) == text
