"""Curves of runs: what they logged, step by step, from the copies on this machine."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from yurt.store import Entry


class Point(msgspec.Struct, frozen=True, array_like=True):
    """One value of a metric."""

    step: float
    time: float
    value: float


class RunCurves(msgspec.Struct, frozen=True):
    """The curves of a run or a task, by metric."""

    run: str
    curves: dict[str, list[Point]]


def of(entries: Sequence[Entry]) -> list[RunCurves]:
    """Return the curves of runs, and of the tasks of sweeps, in order; those without any are left out."""
    raise NotImplementedError
