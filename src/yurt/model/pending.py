"""What a run waits for. Pure values."""

from __future__ import annotations

import msgspec

from yurt.model.live import NodeTrouble, Reservation
from yurt.model.run import State


class Awaited(msgspec.Struct, frozen=True, kw_only=True):
    """A run that another one waits for."""

    run: str
    state: State | None
    """Null if this machine does not know it."""
    ended: bool = False
    """Whether any end of it is sufficient, not only that it completes."""


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """What a run waits for."""

    native: str = ""
    """Slurm's reason."""
    sentence: str
    """The reason in words."""
    advice: str = ""
    """What to do about it."""
    limits: list[str] = []
    """The limits that hold it up, with their values, as sentences."""
    after: list[Awaited] = []
    """Runs that it waits for."""
    job: str = ""
    partition: str = ""
    place: int | None = None
    """Its place in the queue of its partition: 1 is next; null if unknown."""
    yours_ahead: int | None = None
    """How many of the jobs and array tasks ahead of it are yours; null if unknown."""
    free_cpus: int | None = None
    """CPUs without a job on nodes of its partition that can start one; null if unknown."""
    free_gpus: int | None = None
    """GPUs without a job on such nodes; null if unknown, or if its partition has none."""
    starts_at: float | None = None
    """When Slurm expects to start it; null if it does not say."""
    waited: float | None = None
    """Seconds since it was submitted."""
    nodes: list[NodeTrouble] = []
    """Nodes that it needs, or of its partition, that are down or drained, with the administrator's reason."""
    maintenance: list[Reservation] = []
    """Reservations for maintenance that may hold it up."""
    admin_comment: str = ""
    """What an administrator wrote about its job."""
    system_comment: str = ""
    """What Slurm or a plugin wrote about its job."""
