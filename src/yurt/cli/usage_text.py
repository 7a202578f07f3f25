"""What a run used, as text: a line for `yurt show`, and curves over time."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from yurt.cli import call
from yurt.model import time_limit
from yurt.model.advice import memory, span
from yurt.model.usage import TasksUsage, Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from yurt.model.run import Run
    from yurt.model.usage_samples import UsageCurve

SHORT = 180
"""Seconds up to which the x axis shows seconds."""


def used(run: Run, usage: Usage | None) -> str:
    """Return what a run used of what it asked for; empty if that is unknown."""
    if usage is None:
        return ""
    asked = run.resources
    parts = [_cpus(usage, usage.cpus or asked.cpus)]
    if usage.memory_mb is not None:
        limit = asked.memory_mb or usage.memory_limit_mb
        which = " (largest process)" if usage.largest_process else ""
        parts.append(f"{memory(usage.memory_mb)}{which} {f'of {memory(limit)} ' if limit else ''}memory")
    if usage.seconds is not None:
        parts.append(span(usage.seconds) + _of_limit(run))
    if usage.gpu_percent is not None:
        most = f" (at most {memory(usage.gpu_memory_mb)} memory)" if usage.gpu_memory_mb else ""
        parts.append(f"GPU {usage.gpu_percent:.0f} %{most}")
    text = ", ".join(part for part in parts if part)
    return f"{text} (first of {usage.nodes} nodes)" if usage.nodes > 1 else text


def _of_limit(run: Run) -> str:
    limit = time_limit.of_run(run)
    return f" of {span(limit)}" if limit else ""


def _cpus(usage: Usage, asked: int | None) -> str:
    busy = usage.busy_cpus
    if busy is None:
        return "" if usage.cpu_seconds is None else f"{usage.cpu_seconds:.2f} s of CPU time"
    if not asked:
        return f"{busy:.1f} CPUs"
    return f"{busy:.1f} of {asked} CPU{'s' * (asked > 1)} ({busy / asked:.0%})".replace("%", " %")


def tasks_used(run: Run, usage: TasksUsage | None) -> str:
    """Return what the tasks of a sweep used: the median, and the most."""
    if usage is None:
        return ""
    asked, parts = run.resources, []
    if usage.cpus is not None and usage.cpus_most is not None:
        of = f" of {asked.cpus}" if asked.cpus else ""
        parts.append(f"{usage.cpus:.1f} CPUs (at most {usage.cpus_most:.1f}{of})")
    if usage.memory_mb is not None and usage.memory_mb_most is not None:
        of = f" of {memory(asked.memory_mb)}" if asked.memory_mb else ""
        parts.append(f"{memory(usage.memory_mb)} memory (at most {memory(usage.memory_mb_most)}{of})")
    if usage.seconds is not None and usage.seconds_most is not None:
        of = _of_limit(run)
        parts.append(f"{span(usage.seconds)} (at most {span(usage.seconds_most)}{of})")
    if usage.gpu_percent is not None:
        parts.append(f"GPU {usage.gpu_percent:.0f} %")
    return f"median of {usage.tasks} tasks: " + ", ".join(parts)


def print_curves(run: Run, curve: UsageCurve) -> None:
    """Print what a run used over time, in one picture for each resource."""
    from yurt.cli.metrics_text import print_pairs

    unit, scale = ("minute", 60) if curve.seconds and curve.seconds[-1] > SHORT else ("second", 1)
    times = [each / scale for each in curve.seconds]
    curves: dict[str, Sequence[float | None]] = {
        "CPUs": curve.cpus,
        "memory in MB": curve.memory_mb,
        "GPU in percent": curve.gpu_percent,
    }
    known = {
        title: [(x, float(y)) for x, y in zip(times, values, strict=True) if y is not None]
        for title, values in curves.items()
    }
    pictures = [(title, pairs) for title, pairs in known.items() if pairs]
    if not times:
        print("nothing was recorded over time", file=sys.stderr)
        return
    for at, (title, pairs) in enumerate(pictures):
        if at and not call.plain():
            print()
        print_pairs(run.id, title, pairs, unit=unit, number=len(pictures))
