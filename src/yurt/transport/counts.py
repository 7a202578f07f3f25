"""Counts the commands and connections of this process, by context, over the last minute."""

from __future__ import annotations

import time
from collections import defaultdict, deque

_commands: dict[str, deque[float]] = defaultdict(deque)
_connections: dict[str, deque[float]] = defaultdict(deque)


def note_command(context: str) -> None:
    _commands[context].append(time.monotonic())


def note_connection(context: str) -> None:
    _connections[context].append(time.monotonic())


def commands() -> dict[str, int]:
    """Return how many commands were sent to each context in the last minute."""
    return _recent(_commands)


def connections() -> dict[str, int]:
    """Return how many connections were opened to each context in the last minute."""
    return _recent(_connections)


def _recent(noted: dict[str, deque[float]]) -> dict[str, int]:
    since = time.monotonic() - 60
    for times in noted.values():
        while times and times[0] < since:
            times.popleft()
    return {context: len(times) for context, times in noted.items() if times}
