"""What a run used of its resources, as its job measured it. Pure values."""

from collections.abc import Sequence

import msgspec


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a run used in all its starts; null for what is unknown."""

    seconds: float | None = None
    """For how long it was measured."""
    cpu_seconds: float | None = None
    """CPU time of all processes on its first node."""
    memory_mb: int | None = None
    """The most memory that its processes had at a time on its first node, without the file cache."""
    largest_process: bool = False
    """Whether `memory_mb` is that of its largest process only, with the files that it had mapped: the run was too short
    to measure all."""
    gpu_percent: float | None = None
    """Mean utilization of its GPUs."""
    gpu_memory_mb: int | None = None
    """The most memory that it used on one GPU."""
    nodes: int = 1
    """The number of its nodes. Only the first is measured."""
    cpus: int | None = None
    """The CPUs that its job had on that node."""
    memory_limit_mb: int | None = None
    """The memory that its job had on that node."""

    @property
    def busy_cpus(self) -> float | None:
        """The mean number of CPUs that it used; None if it was too short to tell."""
        if self.cpu_seconds is None or self.seconds is None or self.seconds < SHORT:
            return None
        return self.cpu_seconds / self.seconds


class TasksUsage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the tasks of a sweep used; null for what is unknown."""

    tasks: int
    """The number of tasks that were measured."""
    cpus: float | None = None
    """The CPUs that a task kept busy on average: the median of the tasks."""
    cpus_most: float | None = None
    """The same of the task with the most."""
    memory_mb: int | None = None
    """The most memory of a task: the median of the tasks."""
    memory_mb_most: int | None = None
    """The same of the task with the most."""
    seconds: float | None = None
    """How long a task was measured: the median of the tasks."""
    seconds_most: float | None = None
    """The same of the longest task."""
    gpu_percent: float | None = None
    """Mean utilization of the GPUs of a task: the median of the tasks."""


def tasks_usage(used: Sequence[Usage]) -> TasksUsage | None:
    """Return what the tasks of a sweep used; None if none was measured."""
    if not used:
        return None
    cpus = [busy for each in used if (busy := each.busy_cpus) is not None]
    memory = [each.memory_mb for each in used if each.memory_mb is not None]
    seconds = [each.seconds for each in used if each.seconds is not None]
    gpu = [each.gpu_percent for each in used if each.gpu_percent is not None]
    return TasksUsage(
        tasks=len(used),
        cpus=round(_median(cpus), 2) if cpus else None,
        cpus_most=round(max(cpus), 2) if cpus else None,
        memory_mb=int(_median(memory)) if memory else None,
        memory_mb_most=max(memory, default=None),
        seconds=_median(seconds) if seconds else None,
        seconds_most=max(seconds, default=None),
        gpu_percent=_median(gpu) if gpu else None,
    )


def _median(values: Sequence[float]) -> float:
    """Return the median; `statistics` takes long to import."""
    ordered, middle = sorted(values), len(values) // 2
    return ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


SHORT = 0.05
"""Seconds for which CPU time in clock ticks says too little about the number of CPUs."""
