"""Facts that `probe` records about a site: partitions, accounts, storage, tools. Pure values."""

import re
from typing import Protocol

import msgspec

MAX_ARRAY = 1001
"""Slurm's default of MaxArraySize."""


class NodeKind(msgspec.Struct, frozen=True, kw_only=True):
    """Identical nodes of a partition."""

    count: int
    cpus: int
    memory_mb: int
    gpu_type: str = ""
    gpus: int = 0
    features: list[str] = []


class Partition(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    default: bool = False
    up: bool = True
    max_minutes: int | None = None
    """Maximum time limit in minutes; null means no limit."""
    default_minutes: int | None = None
    grace_seconds: int = 0
    preempt: str = ""
    """What happens to preempted jobs; empty if jobs are not preempted."""
    max_nodes: int | None = None
    accounts: list[str] = []
    """The accounts that may use it; empty means all."""
    nodes: list[NodeKind] = []


class Qos(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    max_submit: int | None = None
    max_running: int | None = None
    max_minutes: int | None = None


class Account(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    default: bool = False
    qos: list[str] = []
    default_qos: str = ""
    max_submit: int | None = None


class Tier(msgspec.Struct, frozen=True, kw_only=True):
    """A storage area: the variable that names it, its folder, its size."""

    name: str
    variable: str
    path: str
    total_mb: int | None = None
    free_mb: int | None = None
    writable: bool = True


class NodeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that only a compute node can provide (`context probe --deep`)."""

    node: str
    probed_at: float
    internet: bool
    ssh: bool
    """Whether the login node can ssh to a node where the user has a job."""
    local_disk: str = ""
    """The mount point of the node's local disk."""
    local_free_mb: int | None = None
    tools: dict[str, str] = {}
    tmpdir: bool = False
    """Whether the site sets $SLURM_TMPDIR for each job."""
    cuda: str = ""
    """The newest CUDA version that the node's driver supports; empty if it has no GPU."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a site at `probed_at` (seconds since 1970, by the clock of this machine)."""

    probed_at: float
    user: str
    host: str
    shell: str = ""
    slurm_version: str = ""
    cluster: str = ""
    accounting: bool = False
    accounting_silent: bool = False
    """Whether sacctmgr failed; accounts and QOS are then from an earlier probe, or empty."""
    partitions: list[Partition] = []
    accounts: list[Account] = []
    qos: list[Qos] = []
    max_array: int = MAX_ARRAY
    min_job_age: int = 300
    kill_wait: int = 30
    """Seconds between SIGTERM and SIGKILL when a job is stopped."""
    enforces_limits: bool = True
    """Whether Slurm rejects jobs that exceed the limits of their partition; else they stay pending forever."""
    requeue: bool = True
    requeue_refusal: str = ""
    home_refusal: str = ""
    """Why the site rejects submissions from the home folder; empty if it accepts them."""
    variables: dict[str, str] = {}
    """Variables of a login shell on the site that name a folder, and USER."""
    sbatch_variables: dict[str, str] = {}
    """Options of sbatch in the environment on the site, such as SBATCH_ACCOUNT; options that yurt sets replace them."""
    marks: dict[str, str] = {}
    """What identifies a site to a profile: the variable CC_CLUSTER, or `slurm_gcp` on Google Cloud."""
    tiers: list[Tier] = []
    modules: str = ""
    """lmod, environment-modules, or empty."""
    modules_init: str = ""
    tools: dict[str, str] = {}
    pythons: list[str] = []
    """Versions of Python 3 on the PATH of a login shell; that of `python3` comes first."""
    node: NodeFacts | None = None

    def expand(self, path: str) -> str:
        """Expand ~, $NAME and ${NAME} in a path with the site's variables. KeyError for an unknown variable."""
        home = ""
        if path == "~" or path.startswith("~/"):
            home, path = self.variables["HOME"], path[1:]
        if "$" not in path:
            return home + path
        return home + re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda found: self.variables[found[1] or found[2]], path)

    def partition(self, name: str) -> Partition | None:
        return next((each for each in self.partitions if each.name == name), None)

    def partition_of(self, requested: str | None) -> Partition | None:
        """Return the partition of a job that requests this one, or none. None: it requests several, or is unknown."""
        return self.partition(partition_of_job(requested, self))

    @property
    def default_partition(self) -> str:
        return next((each.name for each in self.partitions if each.default), "")

    @property
    def gpu_types(self) -> list[str]:
        kinds = {kind.gpu_type for each in self.partitions for kind in each.nodes if kind.gpus}
        return sorted(kinds - {""})


def largest_array(facts: Facts | None) -> int:
    """Return the maximum number of tasks in one job array; without facts, as if Slurm had its default.

    One less than MaxArraySize, which is above every index; `yurt context probe` prints the same number.
    """
    return max(1, (MAX_ARRAY if facts is None else facts.max_array) - 1)


class _HasDefault(Protocol):
    @property
    def default_partition(self) -> str: ...


def partition_of_job(requested: str | None, site: _HasDefault | None) -> str:
    """Return the partition of a job, or several with commas: those that it requests, else the default of the site.

    Empty if the site has no default, or nothing is known of it.
    """
    return requested or (site.default_partition if site is not None else "")
