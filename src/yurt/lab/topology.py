"""Specification of the lab's two clusters: hosts, addresses, file systems, accounts. Pure values."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network
from typing import Literal

Role = Literal["ctl", "login", "node"]

INDEX_PORT = 3141
"""Port of a cluster's package index, on its controller."""


@dataclass(frozen=True)
class HostSpec:
    """One machine of a cluster."""

    name: str
    role: Role
    last_byte: int
    gpus: int = 0


@dataclass(frozen=True)
class Account:
    """A Unix account that exists only inside the clusters."""

    name: str
    uid: int
    purpose: str


@dataclass(frozen=True)
class ClusterSpec:
    """The layout of a cluster."""

    name: str
    network: IPv4Network
    hosts: tuple[HostSpec, ...]
    accounts: tuple[Account, ...]
    accounting: bool
    node_ssh: bool
    memory_limits: bool
    route_out: bool
    index: bool
    root: str = field(default="/", compare=False)
    """The root file system under the hosts' own files: its programs, Slurm and accounts of daemons are theirs."""

    def host(self, name: str) -> HostSpec | None:
        return next((host for host in self.hosts if host.name == name), None)

    def address(self, host: HostSpec) -> IPv4Address:
        return self.network[host.last_byte]

    def of_role(self, role: Role) -> tuple[HostSpec, ...]:
        return tuple(host for host in self.hosts if host.role == role)

    @property
    def index_url(self) -> str:
        """The URL of the cluster's package index; empty if it has none. The cluster has no name service."""
        return f"http://{self.address(self.of_role('ctl')[0])}:{INDEX_PORT}/simple/" if self.index else ""

    @property
    def login(self) -> HostSpec:
        """The login host that users reach under the cluster's name."""
        return self.of_role("login")[0]


# High uids, so that no account of the lab shares a uid with a user of this machine.
ALICE = Account("alice", 61001, "the researcher: logs in with a key")
BOB = Account("bob", 61002, "another user: must never access alice's files")
CAROL = Account("carol", 61003, "logs in with a key and a code (keyboard-interactive)")
OPER = Account("oper", 61004, "Slurm operator: can extend time limits")

ALPHA = ClusterSpec(
    name="alpha",
    network=IPv4Network("10.77.1.0/24"),
    hosts=(
        HostSpec("ctl", "ctl", 2),
        HostSpec("login", "login", 10),
        HostSpec("n1", "node", 11, gpus=2),
        HostSpec("n2", "node", 12, gpus=2),
        HostSpec("n3", "node", 13),
    ),
    accounts=(ALICE, BOB, CAROL, OPER),
    accounting=True,
    node_ssh=True,
    memory_limits=True,
    route_out=True,
    index=True,
)

BETA = ClusterSpec(
    name="beta",
    network=IPv4Network("10.77.2.0/24"),
    hosts=(
        HostSpec("ctl", "ctl", 2),
        HostSpec("login1", "login", 9),
        HostSpec("login2", "login", 10),
        HostSpec("n1", "node", 11),
        HostSpec("n2", "node", 12),
    ),
    accounts=(ALICE, BOB),
    accounting=False,
    node_ssh=False,
    memory_limits=False,
    route_out=False,
    index=False,
)

CLUSTERS: dict[str, ClusterSpec] = {spec.name: spec for spec in (ALPHA, BETA)}

SHARED = {"home": 1024, "scratch": 2048, "project": 256}
"""Shared file systems of a cluster and their sizes in MB: small enough to fill."""

NODE_DISK_MB = 1024
"""The disk of one compute node, mounted there as /scratch."""

MOUNTS = {"home": "/home", "scratch": "/lustre/scratch", "project": "/lustre/project"}

WIRE = IPv4Network("10.77.100.0/24")
"""Addresses of the wire, the switchable link between the login hosts of the two clusters."""

DEFAULT_SUBNET = "10.78.0.0/16"
"""Default network of the links between this machine and the login hosts."""


def wire_addresses(index: int) -> tuple[IPv4Address, IPv4Address]:
    """Return (alpha's end, beta's end) of the wire to beta's index-th login host."""
    return WIRE[4 * index + 1], WIRE[4 * index + 2]


def wires(spec: ClusterSpec, host: HostSpec) -> list[tuple[str, IPv4Address, IPv4Address]]:
    """Return the wires of a login host: (name of the other end, its own address, the other end's address)."""
    found = []
    for index, far in enumerate(BETA.of_role("login")):
        alpha_end, beta_end = wire_addresses(index)
        if (spec, host) == (ALPHA, ALPHA.login):
            found.append((alias(BETA, far), alpha_end, beta_end))
        elif (spec, host) == (BETA, far):
            found.append((ALPHA.name, beta_end, alpha_end))
    return found


def alias(spec: ClusterSpec, host: HostSpec) -> str:
    """Return a host's name outside its cluster. The first login host has the cluster's name."""
    return spec.name if host == spec.login else f"{spec.name}-{host.name}"


def login_hosts() -> list[tuple[ClusterSpec, HostSpec]]:
    """Return all login hosts of the lab. A host's position determines its outside address."""
    return [(spec, host) for spec in CLUSTERS.values() for host in spec.of_role("login")]


def outside_addresses(block: IPv4Network, spec: ClusterSpec, host: HostSpec) -> tuple[IPv4Address, IPv4Address]:
    """Return (this machine's end, the login host's end) of the link to a login host."""
    index = login_hosts().index((spec, host))
    return block[4 * index + 1], block[4 * index + 2]
