"""How tests wait: for an event, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(what: Callable[[], object], *, seconds: float = 120, pause: float = 0.1) -> None:
    """Wait until something becomes true; the last answer is shown if it never does.

    `seconds` only bounds how long a test that fails takes: leave it generous, for busy machines.
    """
    deadline = time.monotonic() + seconds
    while not (answer := what()):
        assert time.monotonic() < deadline, f"still {answer!r} after {seconds} s"
        time.sleep(pause)
