"""The state of a site at one moment: nodes, partitions, the queue, reservations. Pure values."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

FREE_STATES = ("idle", "mixed", "powered down")
"""States of nodes that can start a job. Memory and GPUs of a node whose CPUs are all allocated are not free."""

STATES = (
    "idle",
    "mixed",
    "allocated",
    "reserved",
    "completing",
    "powered down",
    "maintenance",
    "drained",
    "down",
    "unknown",
)
"""The states of nodes, in the order of texts and bars."""


class Controller(msgspec.Struct, frozen=True, kw_only=True):
    """A host of Slurm's controller."""

    host: str
    role: str
    """primary, or backup."""
    up: bool


class LiveGpus(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    """Empty if the site does not name the type."""
    total: int
    """GPUs on all nodes, also on those that are down."""
    free: int
    """GPUs without a job on nodes that can start one."""


class LiveNodes(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of a site or of a partition. Only nodes that can start a job have something free."""

    states: dict[str, int] = {}
    """The number of nodes by state."""
    cpus: int = 0
    """CPUs of all nodes."""
    free_cpus: int = 0
    """CPUs without a job on nodes that can start one."""
    memory_mb: int | None = None
    """Memory of all nodes in MB; null if unknown."""
    free_memory_mb: int | None = None
    """Memory without a job on nodes that can start one, in MB; null if unknown."""
    gpus: list[LiveGpus] = []
    """GPUs by type."""

    @property
    def count(self) -> int:
        return sum(self.states.values())


class LivePartition(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    default: bool = False
    state: str = "up"
    """up, down, drain or inactive."""
    usable: bool = True
    """Whether you may submit to it, as far as the site tells."""
    why_not: str = ""
    """Why you cannot use it; empty if you may."""
    max_minutes: int | None = None
    """Maximum time limit in minutes; null means no limit."""
    default_minutes: int | None = None
    max_nodes: int | None = None
    preempt: str = ""
    """What happens to preempted jobs; empty if jobs are not preempted."""
    grace_seconds: int = 0
    """How long preempted jobs may continue."""
    nodes: LiveNodes = LiveNodes()
    running: int = 0
    """Running jobs of all users, as far as the site shows them."""
    pending: int = 0
    """Pending jobs and array tasks of all users, as far as the site shows them."""


class NodeTrouble(msgspec.Struct, frozen=True, kw_only=True):
    """A node that is down or drained."""

    node: str
    state: str
    """down or drained."""
    reason: str = ""
    """The administrator's or Slurm's reason."""
    since: float | None = None
    """When the reason was set."""
    partitions: list[str] = []
    """Its partitions."""


class LiveJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job of yours in the queue."""

    job: str
    state: str
    """Slurm's state in lower case: pending, running, …; on this machine running or pending."""
    partition: str
    """Its partition, or several with commas; empty on this machine."""
    run: str = ""
    """The yurt run of this job; empty if this machine does not know it."""
    tasks: int = 1
    """The number of pending tasks of a job array; 1 for other jobs."""
    priority: int = 0
    """Slurm's priority; 0 for held jobs."""
    place: int | None = None
    """The place of a pending job in the queue of its partition: 1 is next. Null for held and running jobs."""
    starts_at: float | None = None
    """When a running job started, or when Slurm expects to start a pending one."""
    reason: str = ""
    """Slurm's reason why it is pending."""
    factors: dict[str, float] = {}
    """The parts of the priority, such as age and fairshare; empty if Slurm does not report them."""


class FairShare(msgspec.Struct, frozen=True, kw_only=True):
    """Your share in an account: 1 is the best factor, 0 the worst."""

    account: str
    factor: float | None = None
    """The fair-share factor of your priority; null if unknown."""
    shares: float | None = None
    """Your normalized share of the cluster."""
    usage: float | None = None
    """Your effective share of the recent usage."""


class LiveNode(msgspec.Struct, frozen=True, kw_only=True):
    """One node: what it has, and what of that no job uses."""

    name: str
    partitions: list[str] = []
    state: str
    """One of STATES."""
    cpus: int
    free_cpus: int
    memory_mb: int
    free_memory_mb: int
    gpus: list[LiveGpus] = []
    """GPUs by type; free only if the node can start a job."""
    load: float | None = None
    """The load average that the node reports; null if unknown."""


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    starts_at: float | None = None
    """When it begins."""
    ends_at: float | None = None
    """When it ends."""
    nodes: str = ""
    """Its nodes in Slurm's notation."""
    node_count: int = 0
    """The number of its nodes."""
    flags: list[str] = []
    """Slurm's flags."""
    maintenance: bool = False
    """Whether it is for maintenance (flag MAINT)."""
    active: bool = False
    """Whether it has begun."""
    usable: bool = False
    """Whether its users, accounts or groups include you."""


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs and array tasks of all users, as far as the site shows them."""

    running: int = 0
    """Running jobs."""
    pending: int = 0
    """Pending jobs and array tasks."""
    other: int = 0
    """Jobs in other states, such as completing."""
    mine: list[LiveJob] = []
    """Your jobs in order of priority, at most 200."""
    mine_total: int = 0
    """The number of your jobs; an array with pending tasks counts them as one."""
    mine_states: dict[str, int] = {}
    """The number of all your jobs and array tasks by state."""


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a site at `at`, by the clock of this machine."""

    at: float
    """When the site was queried."""
    host: str
    """The host that answered: the login node, or this machine."""
    silent: str = ""
    """Why the scheduler did not respond; everything below is then empty."""
    accounting_silent: bool = False
    """Whether the site has accounting and it does not respond; fair shares are then missing."""
    controllers: list[Controller] = []
    """The hosts of Slurm's controller."""
    nodes: LiveNodes = LiveNodes()
    """All nodes of the site."""
    partitions: list[LivePartition] = []
    """The partitions in Slurm's order."""
    troubles: list[NodeTrouble] = []
    """Nodes that are down or drained, at most 200."""
    queue: Queue = Queue()
    """The queue of the site."""
    fair_share: list[FairShare] = []
    """Your shares, by account."""
    reservations: list[Reservation] = []
    """Current and future reservations."""
    load: float | None = None
    """The load average of this machine over one minute; null for a cluster."""

    @property
    def default_partition(self) -> str:
        return next((each.name for each in self.partitions if each.default), "")

    @property
    def problem(self) -> str:
        """Return `silent` as a sentence: it names the command if only one of Slurm's did not answer."""
        return self.silent if self.silent.startswith("`") else f"its controller does not respond ({self.silent})"


def gpu_counts(pairs: Iterable[tuple[str, int, int]]) -> list[LiveGpus]:
    """Return the GPUs by type, from triples of type, total and free."""
    found: dict[str, tuple[int, int]] = {}
    for kind, total, free in pairs:
        before = found.get(kind, (0, 0))
        found[kind] = before[0] + total, before[1] + free
    return [LiveGpus(type=kind, total=found[kind][0], free=found[kind][1]) for kind in sorted(found)]
