"""What is known of a site, from asking it: partitions, accounts, storage, tools. Pure values."""

import re

import msgspec


class NodeKind(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes of one make in a partition."""

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
    """None is no limit."""
    default_minutes: int | None = None
    grace_seconds: int = 0
    preempt: str = ""
    """What happens to its jobs when others need the nodes; empty if nothing."""
    max_nodes: int | None = None
    accounts: list[str] = []
    """The only accounts that may use it; empty is all."""
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
    """A storage place: a variable that names it, its folder, its size."""

    name: str
    variable: str
    path: str
    total_mb: int | None = None
    free_mb: int | None = None
    writable: bool = True


class NodeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What only a compute node knows (`context probe --deep`)."""

    node: str
    probed_at: float
    internet: bool
    ssh: bool
    """Whether one's own node can be entered by ssh from the login host."""
    local_disk: str = ""
    """Where a disk of the node's own is mounted."""
    local_free_mb: int | None = None
    tools: dict[str, str] = {}
    tmpdir: bool = False
    """Whether the site gives each job a $SLURM_TMPDIR."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """A site as it was seen at `probed_at` (seconds since 1970, the laptop's clock)."""

    probed_at: float
    user: str
    host: str
    shell: str = ""
    slurm_version: str = ""
    cluster: str = ""
    accounting: bool = False
    accounting_silent: bool = False
    """Whether sacctmgr failed: accounts and QOS are then those of an earlier look, or none."""
    partitions: list[Partition] = []
    accounts: list[Account] = []
    qos: list[Qos] = []
    max_array: int = 1001
    min_job_age: int = 300
    enforces_limits: bool = True
    """False: a job over its partition's limits is taken and pends for ever."""
    requeue: bool = True
    requeue_refusal: str = ""
    home_refusal: str = ""
    """What the site said to a submission from the home folder; empty if it took it."""
    variables: dict[str, str] = {}
    """Variables of a login shell there that name a folder, and USER."""
    tiers: list[Tier] = []
    modules: str = ""
    """lmod, environment-modules, or empty."""
    modules_init: str = ""
    tools: dict[str, str] = {}
    node: NodeFacts | None = None

    def expand(self, path: str) -> str:
        """A path of a context with ~ and $NAME or ${NAME} as they are on the site. KeyError names an unknown one."""
        if path == "~" or path.startswith("~/"):
            path = "${HOME}" + path[1:]
        return re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda found: self.variables[found.group(1) or found.group(2)], path)

    def partition(self, name: str) -> Partition | None:
        return next((each for each in self.partitions if each.name == name), None)

    @property
    def default_partition(self) -> str:
        return next((each.name for each in self.partitions if each.default), "")

    @property
    def gpu_types(self) -> list[str]:
        kinds = {kind.gpu_type for each in self.partitions for kind in each.nodes if kind.gpus}
        return sorted(kinds - {""})
