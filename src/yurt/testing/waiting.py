"""Waiting in tests: for a condition, never for a fixed time."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(what: Callable[[], object], *, seconds: float = 120, pause: float = 0.1) -> None:
    """Wait until `what` returns a true value; fail with its last value after `seconds`.

    `seconds` limits only the duration of a failing test: leave it generous, for busy machines.
    """
    deadline = time.monotonic() + seconds
    while not (answer := what()):
        assert time.monotonic() < deadline, f"still {answer!r} after {seconds} s"
        time.sleep(pause)
