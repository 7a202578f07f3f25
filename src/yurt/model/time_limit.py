"""The time limit of a run in seconds: exact on this machine, whole minutes where Slurm enforces it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from yurt.model.resources import parse_seconds
from yurt.model.run import Chosen, Run

WHOLE_MINUTES = ("slurm",)
"""Types of contexts whose scheduler counts minutes."""


def seconds(kind: str, minutes: int | None, asked: Any) -> int | None:
    """Return the limit. `minutes` is rounded up; `asked` is the value that the user gave, if any."""
    if minutes is None:
        return None
    exact = _exact(minutes, asked)
    return exact if exact and kind not in WHOLE_MINUTES else minutes * 60


def of_run(run: Run) -> int | None:
    """Return the limit of a run, or of each task of a sweep."""
    return seconds(run.context_type, run.resources.minutes, asked_in(run.settings))


def rounded(kind: str, minutes: int | None, asked: Any) -> list[str]:
    """Return a warning if the scheduler allows more time than the user asked for."""
    exact = _exact(minutes, asked) if minutes is not None else 0
    if minutes is None or kind not in WHOLE_MINUTES or not exact % 60:
        return []
    unit = "minute" if minutes == 1 else "minutes"
    return [f"the time limit {asked} is rounded up to {minutes} {unit}, because the scheduler counts whole minutes"]


def asked_in(settings: Sequence[Chosen]) -> Any:
    """Return the time limit as the user wrote it; None if the settings have none."""
    return next((each.value for each in settings if each.key == "time"), None)


def _exact(minutes: int, asked: Any) -> int:
    """Return the seconds that the user asked for; 0 if the limit in minutes has another source."""
    try:
        found = parse_seconds(asked) if asked is not None else 0
    except ValueError:  # in a record from elsewhere: what the user types now was checked before
        found = 0
    return found if -(-found // 60) == minutes else 0
