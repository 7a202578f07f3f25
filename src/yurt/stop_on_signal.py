"""Stops programs that yurt has started before SIGTERM or SIGHUP ends yurt.

A program with a session of its own does not receive the signals of a closed terminal, of `timeout` or of a scheduler.
Imports only modules that Python has loaded anyway.
"""

from __future__ import annotations

import os
from collections.abc import Callable

_HUP, _TERM = 1, 15
"""Numbers of all systems; the module that names them is slow to import."""

_stops: list[Callable[[], None]] = []


def add(stop: Callable[[], None]) -> None:
    """Call `stop` before one of the signals ends this process, unless that has its own handler or ignores it."""
    import _signal  # type: ignore[import-not-found]

    _stops.append(stop)
    try:
        for number in (_HUP, _TERM):
            if _signal.getsignal(number) == _signal.SIG_DFL:
                _signal.signal(number, _end)
    except ValueError:  # not in the main thread
        return


def remove(stop: Callable[[], None]) -> None:
    """Do not call it any more."""
    if stop in _stops:
        _stops.remove(stop)


def _end(number: int, _frame: object) -> None:
    import _signal

    _signal.signal(number, _signal.SIG_DFL)
    while _stops:
        _stops.pop()()
    os.kill(os.getpid(), number)
