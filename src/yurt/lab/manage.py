"""lab up, down, set, status, shell, index, fault: manage the lab, real Slurm clusters on this machine."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from yurt.errors import NotFoundError, RefusedError, UserError, one_of
from yurt.lab import Lab, Started, roots
from yurt.lab.cluster import PATH, Cluster
from yurt.lab.faults import KINDS
from yurt.lab.index import Distribution
from yurt.lab.preflight import check_machine
from yurt.lab.relay import Rules
from yurt.lab.status import LabStatus, status_of
from yurt.lab.topology import ALPHA, alias
from yurt.model.progress import Watch, unwatched
from yurt.model.result import Result

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
