"""What a run used of its resources, as its job measured it. Pure values."""

import msgspec

SHORT = 0.05
"""Seconds for which CPU time in clock ticks says too little about the number of CPUs."""


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
