"""Current status of a lab: hosts, daemons, addresses, memory."""

from __future__ import annotations

from ipaddress import IPv4Network
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from yurt.lab import network, processes, versions
from yurt.lab.topology import CLUSTERS, ClusterSpec, HostSpec, outside_addresses

if TYPE_CHECKING:
    from yurt.lab.lab import Lab


class HostStatus(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    role: str
    up: bool
    address: str
    outside: str
    daemons: list[str]
    """Running daemons."""
    missing: list[str]
    """Daemons that should run but do not."""
    slurm: str
    """Slurm's state of the node; empty for hosts that are not compute nodes."""
    memory: int


class IndexStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster's package index."""

    url: str
    """What `pip install --index-url` takes."""
    packages: int
    """Number of packages in it."""


class ClusterStatus(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    context: str
    up: bool
    slurm: str
    """The version of its Slurm."""
    hosts: list[HostStatus]
    index: IndexStatus | None
    """The cluster's package index; null if it has none."""


class LabStatus(msgspec.Struct, frozen=True, kw_only=True):
    instance: str
    folder: str
    ssh_config: str
    """ssh configuration file for the lab's hosts, for `ssh -F`; empty before `up` and after a wipe."""
    linked: bool
    limits: str
    """cgroup version that enforces memory limits on alpha: v1, v2 (untested) or none."""
    clusters: list[ClusterStatus]
    memory: int


def status_of(lab: Lab) -> LabStatus:
    """Read the process table and, if a controller runs, query Slurm. Changes nothing."""
    state = lab.instance.load_state()
    block = IPv4Network(state.block) if state.block else None
    clusters = [_cluster(lab, spec, block) for spec in CLUSTERS.values()]
    config = lab.instance.client / "ssh_config"
    alpha_login = lab.cluster("alpha").pids().get("login")
    return LabStatus(
        instance=lab.instance.name,
        folder=str(lab.instance.folder),
        ssh_config=str(config) if config.exists() else "",
        linked=alpha_login is not None and network.wired(alpha_login),
        limits=state.limits,
        clusters=clusters,
        memory=lab.memory(),
    )


def _cluster(lab: Lab, spec: ClusterSpec, block: IPv4Network | None) -> ClusterStatus:
    cluster = lab.cluster(spec.name)
    pids = cluster.pids()
    uses = processes.use_by_host(pids)
    has_controller = "ctl" in uses and "slurmctld" in uses["ctl"].names
    states = cluster.node_states() if has_controller else {}
    hosts = [_host(spec, host, block, uses.get(host.name), states.get(host.name, "")) for host in spec.hosts]
    complete = all(host.up and not host.missing for host in hosts)
    return ClusterStatus(
        name=spec.name,
        context=lab.instance.context_name(spec.name),
        up=complete,
        slurm=versions.installed(Path(cluster.spec.root)),
        hosts=hosts,
        index=IndexStatus(url=spec.index_url, packages=len(cluster.index.packages())) if spec.index else None,
    )


def _host(
    spec: ClusterSpec, host: HostSpec, block: IPv4Network | None, use: processes.Use | None, slurm: str
) -> HostStatus:
    expected = expected_daemons(spec, host)
    running = [name for name in expected if use is not None and name in use.names]
    outside = str(outside_addresses(block, spec, host)[1]) if block is not None and host.role == "login" else ""
    return HostStatus(
        name=host.name,
        role=host.role,
        up=use is not None,
        address=str(spec.address(host)),
        outside=outside,
        daemons=running,
        missing=[name for name in expected if name not in running],
        slurm=slurm,
        memory=use.memory if use is not None else 0,
    )


def expected_daemons(spec: ClusterSpec, host: HostSpec) -> list[str]:
    """Return the daemons that should run on a host."""
    if host.role == "ctl":
        accounting = ["slurmdbd", "mariadbd"] if spec.accounting else []
        return ["munged", "slurmctld", *accounting, *(["package-index"] if spec.index else [])]
    if host.role == "login":
        return ["munged", "sshd"]
    return ["munged", "slurmd", *(["sshd"] if spec.node_ssh else [])]
