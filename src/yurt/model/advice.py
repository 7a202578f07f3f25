"""Advises to ask for less, from what earlier runs of the same command used. Pure.

It is careful: from few runs, for a small waste, or after a run that needed more, it says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from yurt.model.run import Resources, State
from yurt.model.usage import Usage

FEWEST = 5
"""Completed runs without which nothing is known."""

MARGIN = 1.25
"""What is advised is at least this many times what was used."""

TIME_MARGIN = 1.5
"""The same for the time, which depends on the node too."""

WASTE = 2
"""There is advice if at least this many times what is needed was requested."""

LITTLE_MB, LITTLE_MINUTES, SHORT = 1024, 60, 60
"""Not worth advice: memory in MB, a time limit in minutes; and the CPUs of a run that took so few seconds."""

IDLE = 5
"""GPUs with a lower mean utilization in percent are idle."""

UNUSED = 0.5
"""A GPU with a lower mean utilization in percent was not used: that is 0 %, rounded."""

MEASURED = 30
"""Seconds in which the utilization of a GPU is measured several times."""

SIZES = (1, 1.5, 2, 3, 4, 6, 8, 12)
"""Memory sizes that are advised, times powers of 16, in units of 64 MB."""


class Earlier(msgspec.Struct, frozen=True, kw_only=True):
    """A finished run, or a finished task, of the same program on the same context."""

    state: State
    resources: Resources
    usage: Usage | None
    seconds: float | None = None
    """How long it took, in all its starts."""
    same: bool = False
    """Whether all its arguments are the same too."""


def advice(asked: Resources, earlier: Sequence[Earlier]) -> list[str]:
    """Return what the next run of a command should ask for instead, each as a sentence."""
    measured = [each for each in earlier if each.usage is not None and each.usage.nodes == 1]
    completed = [each for each in measured if each.state == "completed"]
    found = [_time(asked, [each for each in earlier if each.same])]
    if len(completed) >= FEWEST:
        found = [_memory(asked, measured, earlier), _cpus(asked, measured), *found, _gpus(asked, completed)]
    return [each for each in found if each]


def _memory(asked: Resources, measured: Sequence[Earlier], earlier: Sequence[Earlier]) -> str:
    if not asked.memory_mb:
        return ""
    known = [(each.state, mb) for each in measured if each.usage is not None and (mb := each.usage.memory_mb)]
    killed = [each.resources.memory_mb for each in earlier if each.state == "out_of_memory"]
    if sum(state == "completed" for state, _mb in known) < FEWEST or None in killed:
        return ""
    used = max(mb for _state, mb in known)
    needed = rounded_up(int(max(used, *(each or 0 for each in killed), 0) * MARGIN))
    if asked.memory_mb < WASTE * needed or asked.memory_mb - needed < LITTLE_MB:
        return ""
    never = f"{len(known)} similar runs never used more than {memory(used)}"
    return f"ask for {memory(needed)} instead of {memory(asked.memory_mb)} with `--mem {memory(needed)}`: {never}"


def _cpus(asked: Resources, measured: Sequence[Earlier]) -> str:
    if not asked.cpus or (asked.ntasks or 1) > 1:
        return ""
    long = [each.usage for each in measured if each.usage is not None and (each.usage.seconds or 0) >= SHORT]
    busy = [cpus for each in long if (cpus := each.busy_cpus) is not None]
    if len(busy) < FEWEST:
        return ""
    needed = max(1, -int(-max(busy) * MARGIN // 1))
    if asked.cpus < WASTE * needed:
        return ""
    kept = f"{len(busy)} similar runs kept at most {max(busy):.1f} CPUs busy on average"
    return f"ask for {needed} instead of {asked.cpus} CPUs with `--cpus {needed}`: {kept}"


def _time(asked: Resources, same: Sequence[Earlier]) -> str:
    took = [each.seconds for each in same if each.state == "completed" and each.seconds is not None]
    if not asked.minutes or asked.minutes < LITTLE_MINUTES or len(took) < FEWEST:
        return ""
    limits = [each.resources.minutes for each in same if each.state == "timeout"]
    if None in limits:
        return ""
    needed = max(max(took) / 60, *(each or 0 for each in limits), 0) * TIME_MARGIN
    minutes = -int(-needed // 5) * 5 if needed < LITTLE_MINUTES else -int(-needed // 30) * 30
    if asked.minutes < WASTE * minutes:
        return ""
    most = f"{len(took)} runs of this command took at most {span(max(took))}"
    shorter = "a job with a shorter limit often starts earlier"
    instead = f"ask for {span(minutes * 60)} instead of {span(asked.minutes * 60)} with `--time {minutes}`"
    return f"{instead}: {most}, and {shorter}"


def _gpus(asked: Resources, completed: Sequence[Earlier]) -> str:
    used = [
        each.usage.gpu_percent for each in completed if each.usage is not None and each.usage.gpu_percent is not None
    ]
    if not asked.gpus or len(used) < FEWEST or max(used) >= IDLE:
        return ""
    return (
        f"check that it uses its GPU: in {len(used)} similar runs, the mean utilization was at most {max(used):.0f} %"
    )


def unused_gpu(asked: Resources, usage: Usage | None) -> str:
    """Return that a run held GPUs and did not use them, as a sentence; empty if it did, or was too short to say."""
    if not asked.gpus or usage is None or usage.gpu_percent is None or usage.gpu_percent >= UNUSED:
        return ""
    if (usage.seconds or 0) < MEASURED:
        return ""
    which = "its GPU was" if asked.gpus == 1 else f"its {asked.gpus} GPUs were"
    return f"{which} not used: the mean utilization was {usage.gpu_percent:.0f} % in {span(usage.seconds or 0)}"


def rounded_up(mb: int) -> int:
    """Return the next size that a person would ask for: 512M, 768M, 1G, 1.5G, 2G, 3G, 4G, 6G..."""
    unit = 64
    while True:
        for size in SIZES:
            if size * unit >= mb:
                return int(size * unit)
        unit *= 16


def memory(mb: int) -> str:
    """Return a memory size as --mem takes it: 900M, 2.4G."""
    return f"{mb}M" if mb < 1000 else f"{mb / 1024:.1f}G".replace(".0G", "G")


def span(seconds: float) -> str:
    """Return a duration in words: 42 s, 7 min, 3 h 12 min."""
    minutes = int(seconds) // 60
    if minutes < 2:
        return f"{int(seconds)} s"
    hours, rest = divmod(minutes, 60)
    return f"{minutes} min" if not hours else f"{hours} h {rest} min" if rest else f"{hours} h"
