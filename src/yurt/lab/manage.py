"""lab up, down, set, status, shell, index, fault: manage the lab, real Slurm clusters on this machine."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from ipaddress import IPv4Network
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from yurt.errors import NotFoundError, RefusedError, UserError, one_of
from yurt.lab import Lab, Started, network, processes, roots, versions
from yurt.lab.cluster import PATH, Cluster
from yurt.lab.faults import KINDS
from yurt.lab.index import Distribution
from yurt.lab.preflight import check_machine
from yurt.lab.relay import Rules
from yurt.lab.topology import ALPHA, CLUSTERS, ClusterSpec, HostSpec, alias, outside_addresses
from yurt.model.progress import Watch, unwatched
from yurt.model.result import Result

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


Limits = Literal["auto", "v1", "v2", "none"]

FAULTS = {kind: (about.help, about.example) for kind, about in KINDS.items()}
"""The help text and an example of each fault that takes only a target."""


class Figures(msgspec.Struct, frozen=True):
    """The memory and CPU use of an idle lab."""

    memory: int
    idle_percent: float


class Stopped(msgspec.Struct, frozen=True):
    clusters: list[str]
    """Clusters that were running or, if `wiped`, had files."""
    wiped: bool
    roots: list[str] = []
    """The Slurm versions whose root file systems were removed."""


class Settings(msgspec.Struct, frozen=True):
    """All changed lines of a cluster's slurm.conf."""

    cluster: str
    settings: dict[str, str]


class Indexed(msgspec.Struct, frozen=True):
    """Files added to a package index."""

    url: str
    """URL of the index."""
    added: list[Distribution]
    """The added files."""


class Command(msgspec.Struct, frozen=True):
    argv: list[str]


class FaultSet(msgspec.Struct, frozen=True):
    fault: str
    target: str


def up(
    clusters: Sequence[str] = (),
    *,
    name: str = "",
    install: bool = False,
    link: bool | None = None,
    subnet: str = "",
    limits: Limits = "auto",
    slurm: str = "",
    watch: Watch = unwatched,
) -> Result[Started]:
    """Start clusters; both if none is named."""
    started = Lab(name).up(clusters, install=install, link=link, subnet=subnet, limits=limits, slurm=slurm, watch=watch)
    warnings: list[str] = []
    if started.limits == "v2":
        warnings.append("memory limits use cgroup v2, which the lab has not been tested with")
    if started.limits == "none" and "alpha" in started.seconds:
        warnings.append(
            "no usable control groups: Slurm kills jobs on alpha that exceed their memory limit only after a delay"
        )
    return Result(kind="lab-started", data=started, warnings=warnings)


def figures(name: str = "", *, seconds: float = 3) -> Figures:
    """Return the memory that the lab uses now, and its share of one core, measured over some seconds."""
    lab = Lab(name)
    before, started = lab.cpu_seconds(), time.monotonic()
    time.sleep(seconds)
    share = (lab.cpu_seconds() - before) / (time.monotonic() - started)
    return Figures(lab.memory(), round(100 * share, 2))


def down(
    clusters: Sequence[str] = (),
    *,
    name: str = "",
    wipe: bool = False,
    remove_roots: bool = False,
    watch: Watch = unwatched,
) -> Result[Stopped]:
    """Stop clusters; both if none is named."""
    if remove_roots and not wipe:
        raise UserError("--roots needs --wipe", code="usage", hint="run `yurt lab down --wipe --roots`")
    found = Lab(name).down(clusters, wipe=wipe, watch=watch)
    removed = roots.remove(watch) if remove_roots else []
    return Result(kind="lab-stopped", data=Stopped(found, wipe, removed))


def status(name: str = "") -> Result[LabStatus]:
    return Result(kind="lab-status", data=status_of(Lab(name)))


def shell_command(target: str, *, name: str = "", user: str = "", command: Sequence[str] = ()) -> Result[Command]:
    """Return the command that opens a shell on a host: ssh for a login node, nsenter for any other host."""
    return Result(kind="command", data=Command(_shell_command(target, name, user, command)))


def _shell_command(target: str, name: str, user: str, command: Sequence[str]) -> list[str]:
    check_machine("shell")
    lab = Lab(name)
    cluster_name, _, host_name = target.partition(":")
    cluster = lab.cluster(cluster_name)
    host = cluster.spec.host(host_name) if host_name else cluster.spec.login
    if host is None:
        names = [f"{cluster_name}:{each.name}" for each in cluster.spec.hosts]
        raise NotFoundError(f"host '{target}' not found in the lab", code="not-found", hint=f"use {one_of(names)}")
    pid = cluster.pid(host.name)
    user = user or ("alice" if host.role == "login" else "root")
    _check_user(cluster, user)
    if host.role == "login" and user != "root":
        remote = [shlex.join(command)] if command else []
        tty = [] if command else ["-t"]
        config = str(lab.instance.client / "ssh_config")
        return ["ssh", "-F", config, *tty, "-l", user, alias(cluster.spec, host), *remote]
    inside = ["nsenter", "-a", "-t", str(pid), "env", "-i", PATH, "TERM=xterm-256color", "LANG=C.UTF-8"]
    if command:
        return [*inside, "runuser", "-u", user, "--", *command]
    return [*inside, "script", "-q", "-e", "-c", f"runuser -l {user}", "/dev/null"]


def _check_user(cluster: Cluster, user: str) -> None:
    accounts = ["root", *(account.name for account in cluster.spec.accounts)]
    if user not in accounts:
        raise UserError(
            f"user '{user}' not found on {cluster.spec.name}",
            code="usage",
            hint=f"use {one_of(accounts)}",
        )


def configure(cluster: str, settings: Sequence[str], *, name: str = "") -> Result[Settings]:
    """Change settings KEY=VALUE in a running cluster's slurm.conf."""
    check_machine("set")
    pairs = [each.partition("=") for each in settings]
    for key, equals, _value in pairs:
        if not key or not equals:
            raise UserError(
                f"'{key}' is not KEY=VALUE", code="usage", hint="for example: `yurt lab set alpha KillWait=30`"
            )
    changed = Lab(name).configure(cluster, {key: value for key, _equals, value in pairs})
    return Result(kind="lab-settings", data=Settings(cluster, changed))


def index(files: Sequence[str], *, name: str = "") -> Result[Indexed]:
    """Add wheels and source distributions to alpha's package index."""
    check_machine("index")
    lab = Lab(name)
    if not lab.index.folder.exists():
        raise RefusedError(
            f"lab '{lab.instance.name}' has no package index yet; alpha was never started",
            code="lab-down",
            hint="start it with `yurt lab up alpha`",
        )
    added = lab.index.add([Path(each) for each in files])
    return Result(kind="lab-index", data=Indexed(ALPHA.index_url, added))


def fault(kind: str, target: str = "", *, name: str = "") -> Result[FaultSet]:
    """Inject one fault, or undo one; it has taken effect on return."""
    check_machine("fault")
    KINDS[kind].apply(Lab(name).faults, target)
    return Result(kind="lab-fault", data=FaultSet(kind, target))


def delay(target: str, rules: dict[str, Any], *, name: str = "") -> Result[FaultSet]:
    """Put the relay in front of a login node, or change its rules (the fields of relay.Rules)."""
    check_machine("fault")
    Lab(name).faults.delay(target, Rules(**rules))
    return Result(kind="lab-fault", data=FaultSet("delay", target))
