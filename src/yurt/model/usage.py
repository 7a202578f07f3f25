"""What a run used of its resources, as its job measured it. Pure values."""

import msgspec


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a run used, from all processes of its last start; null for what is unknown."""

    seconds: float | None = None
    """For how long it was measured."""
    cpu_seconds: float | None = None
    """CPU time of all processes on its first node."""
    memory_mb: int | None = None
    """The most memory that its processes had at a time on one node, without the file cache."""
    gpu_percent: float | None = None
    """Mean utilization of its GPUs."""
    gpu_memory_mb: int | None = None
    """The most memory that it used on one GPU."""
    nodes: int = 1
    """The number of its nodes. Only the first is measured."""
