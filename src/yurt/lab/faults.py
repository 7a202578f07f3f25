"""Faults injected into real components: a link down, a host powered off, a daemon stopped, a disk full.

Each fault has a command that undoes it. Repeating either has no effect.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from yurt.config import paths
from yurt.errors import NotFoundError, RefusedError, UserError, one_of
from yurt.lab import network, processes
from yurt.lab.cluster import Cluster, inside
from yurt.lab.relay import Rules, parse
from yurt.lab.shell import run
from yurt.lab.topology import ALICE, MOUNTS, HostSpec, outside_addresses

if TYPE_CHECKING:
    from yurt.lab.instance import Instance


MIB = 1 << 20


def limit(cluster: Cluster, disk: str, *, megabytes: int, files: int) -> None:
    """Mount an empty file system of this size over the researcher's folder on a disk, on all hosts.

    `files`: how many files and folders it can have. What was in the folder is hidden until `unlimit`.
    """
    unlimit(cluster, disk)
    image = _image(cluster, disk)
    with image.open("wb") as file:
        file.truncate(megabytes * MIB)
    # Twelve inodes are for the file system itself: its root, its journal, lost+found.
    run(
        ["mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", "-N", str(files + 12), str(image)], code="lab-fault-failed"
    )
    device = run(["losetup", "--find", "--show", str(image)], code="lab-fault-failed").strip()
    minor = device.removeprefix("/dev/loop")
    mount = (
        'set -e; [ -b "/dev/$1" ] || mknod "/dev/$1" b 7 "$2"; mount -o noatime "/dev/$1" "$3";'
        ' rmdir "$3/lost+found" 2> /dev/null || :; chown "$4:$4" "$3"; chmod 700 "$3"'
    )
    words = [f"loop{minor}", minor, _folder(disk), str(ALICE.uid)]
    try:
        for pid in _hosts(cluster):
            run(inside(pid, ["sh", "-c", mount, "sh", *words]), code="lab-fault-failed")
    finally:
        run(["losetup", "--detach", device], code="lab-fault-failed")  # when it is unmounted everywhere


def unlimit(cluster: Cluster, disk: str) -> None:
    """Undo `limit`."""
    unmount = 'while grep -q " $1 ext4 " /proc/mounts; do umount -l "$1" || exit; done'
    for pid in _hosts(cluster):
        run(inside(pid, ["sh", "-c", unmount, "sh", _folder(disk)]), code="lab-fault-failed")
    _image(cluster, disk).unlink(missing_ok=True)


def _folder(disk: str) -> str:
    return f"{MOUNTS[disk]}/{ALICE.name}"


def _image(cluster: Cluster, disk: str) -> Path:
    return cluster.folder / "images" / f"limit-{disk}.img"


def _hosts(cluster: Cluster) -> list[int]:
    return [pid for name, pid in cluster.pids().items() if name != "fabric"]


FILLER = ".yurt-lab-full"


@dataclass(frozen=True)
class FaultKind:
    """A fault on the command line."""

    help: str
    """Imperative phrase; the command line capitalises it and adds the period."""
    example: str
    apply: Callable[[Faults, str], None]


class Breakable(Protocol):
    """The part of a lab that faults need."""

    @property
    def instance(self) -> Instance: ...

    def cluster(self, name: str) -> Cluster: ...

    def start_host(self, cluster_name: str, host_name: str) -> None: ...

    def set_link(self, up: bool) -> None: ...


class Faults:
    """Injects faults into one lab. A target is CLUSTER or CLUSTER:HOST; for disks, CLUSTER:DISK."""

    def __init__(self, lab: Breakable) -> None:
        self.lab = lab

    def cut(self, target: str) -> None:
        """Take down the link to a login host: packets are dropped and open connections are not reset."""
        cluster, host = self._login(target)
        network.set_outside(cluster.pid(host.name), up=False)

    def heal(self, target: str) -> None:
        """Undo `cut` and `delay`."""
        cluster, host = self._login(target)
        block = IPv4Network(self.lab.instance.load_state().block)
        machine, login = (str(each) for each in outside_addresses(block, cluster.spec, host))
        network.set_outside(cluster.pid(host.name), up=True, gateway=machine if cluster.spec.route_out else "")
        network.look_up_again(login)
        self._end_relay(cluster, host)
        cluster.service(host.name, "sshd-outside", "start")

    def delay(self, target: str, rules: Rules) -> None:
        """Start the relay in front of a login host's sshd; later calls change its rules.

        Open connections are not affected.
        """
        cluster, host = self._login(target)
        pid = cluster.pid(host.name)
        file = self.rules_file(target)
        parse(rules.to_json())
        paths.write_private(file, rules.to_json().encode())
        if self._relay_pids(cluster, host):
            return
        cluster.service(host.name, "sshd-outside", "stop")
        block = IPv4Network(self.lab.instance.load_state().block)
        listen = f"{outside_addresses(block, cluster.spec, host)[1]}:22"
        script = str(Path(__file__).with_name("relay.py"))
        argv = ["nsenter", "--net", "--pid", "-t", str(pid), sys.executable, "-I", script]
        argv += [listen, f"{cluster.spec.address(host)}:22", str(file)]
        relay = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
        assert relay.stdout is not None
        if relay.stdout.readline() != b"ready\n":
            cluster.service(host.name, "sshd-outside", "start")
            raise RefusedError(f"the relay in front of {target} did not start", code="lab-fault-failed")
        relay.stdout.close()

    def rules_file(self, target: str) -> Path:
        """Return the rules file of a login host's relay; its log is beside it."""
        cluster, host = self._login(target)
        return cluster.folder / "hosts" / host.name / "relay.json"

    def kill_node(self, target: str) -> None:
        """Power off a host without shutting it down."""
        cluster, host = self._host(target)
        pid = cluster.pids().get(host.name)
        if pid is not None:
            processes.kill_hosts([pid])

    def start_node(self, target: str) -> None:
        """Power on a host and wait until its services run and Slurm lists it as up."""
        cluster, host = self._host(target)
        self.lab.start_host(cluster.spec.name, host.name)

    def stop_ctld(self, target: str) -> None:
        self.lab.cluster(target).service("ctl", "ctld", "stop")

    def kill_ctld(self, target: str) -> None:
        """Kill slurmctld before it can save its state."""
        self.lab.cluster(target).service("ctl", "ctld", "kill")

    def start_ctld(self, target: str) -> None:
        cluster = self.lab.cluster(target)
        cluster.service("ctl", "ctld", "start")
        cluster.wait_ready()

    def stop_dbd(self, target: str) -> None:
        self._with_accounting(target).service("ctl", "dbd", "stop")

    def start_dbd(self, target: str) -> None:
        self._with_accounting(target).service("ctl", "dbd", "start")

    def full(self, target: str) -> None:
        """Fill a disk completely."""
        pid, folder = self._disk(target)
        fill = (
            'cd "$1" || exit 1; left() { echo $(df --output=avail -B1 . | tail -n 1); }; '
            'fallocate -l "$(left)" "$2" 2> /dev/null; cat /dev/zero >> "$2" 2> /dev/null; [ "$(left)" = 0 ]'
        )
        run(inside(pid, ["sh", "-c", fill, "sh", folder, FILLER]), code="lab-fault-failed")

    def free(self, target: str) -> None:
        """Undo `full`."""
        pid, folder = self._disk(target)
        run(inside(pid, ["rm", "-f", f"{folder}/{FILLER}"]), code="lab-fault-failed")

    def limit(self, target: str, *, megabytes: int = 64, files: int = 10_000) -> None:
        """Give the researcher's folder on a shared disk a file system of its own, empty and of this size."""
        cluster, disk = self._shared_disk(target)
        limit(cluster, disk, megabytes=megabytes, files=files)

    def unlimit(self, target: str) -> None:
        """Undo `limit`."""
        unlimit(*self._shared_disk(target))

    def _shared_disk(self, target: str) -> tuple[Cluster, str]:
        cluster_name, _, disk = target.partition(":")
        if disk not in MOUNTS:
            names = [f"{cluster_name}:{each}" for each in MOUNTS]
            raise NotFoundError(f"disk '{target}' not found in the lab", code="not-found", hint=f"use {one_of(names)}")
        return self.lab.cluster(cluster_name), disk

    def link(self, _target: str = "") -> None:
        """Connect the login hosts of the two clusters."""
        self.lab.set_link(True)

    def unlink(self, _target: str = "") -> None:
        """Disconnect the login hosts of the two clusters."""
        self.lab.set_link(False)

    def _login(self, target: str) -> tuple[Cluster, HostSpec]:
        cluster_name, _, host_name = target.partition(":")
        cluster = self.lab.cluster(cluster_name)
        if not host_name:
            return cluster, cluster.spec.login
        cluster, host = self._host(target)
        if host.role != "login":
            raise UserError(
                f"'{target}' is not a login host; only login hosts have a link to this machine",
                code="usage",
                hint=f"use `{cluster_name}` for the login host of the cluster",
            )
        return cluster, host

    def _host(self, target: str) -> tuple[Cluster, HostSpec]:
        cluster_name, _, host_name = target.partition(":")
        cluster = self.lab.cluster(cluster_name)
        host = cluster.spec.host(host_name)
        if host is None:
            names = [f"{cluster_name}:{each.name}" for each in cluster.spec.hosts]
            raise NotFoundError(f"host '{target}' not found in the lab", code="not-found", hint=f"use {one_of(names)}")
        return cluster, host

    def _with_accounting(self, target: str) -> Cluster:
        cluster = self.lab.cluster(target)
        if not cluster.spec.accounting:
            raise UserError(
                f"cluster '{target}' has no accounting daemon", code="usage", hint="use `alpha`, which has one"
            )
        return cluster

    def _disk(self, target: str) -> tuple[int, str]:
        """Return a process of a host that mounts the disk, and the mount point."""
        cluster_name, _, disk = target.partition(":")
        cluster = self.lab.cluster(cluster_name)
        disk = disk or "scratch"
        if disk in MOUNTS:
            return cluster.pid(cluster.spec.login.name), MOUNTS[disk]
        host = cluster.spec.host(disk)
        if host is not None and host.role == "node":
            return cluster.pid(disk), "/scratch"
        disks = [*MOUNTS, *(node.name for node in cluster.spec.of_role("node"))]
        names = [f"{cluster_name}:{each}" for each in disks]
        raise NotFoundError(f"disk '{target}' not found in the lab", code="not-found", hint=f"use {one_of(names)}")

    def _relay_pids(self, cluster: Cluster, host: HostSpec) -> list[int]:
        file = str(self.rules_file(f"{cluster.spec.name}:{host.name}"))
        return processes.with_last_argument(file)

    def _end_relay(self, cluster: Cluster, host: HostSpec) -> None:
        processes.end(self._relay_pids(cluster, host), signal.SIGKILL)


KINDS: dict[str, FaultKind] = {
    "cut": FaultKind("drop all packets to and from a login host", "yurt lab fault cut alpha", Faults.cut),
    "heal": FaultKind("undo `cut` and `delay`", "yurt lab fault heal alpha", Faults.heal),
    "kill-node": FaultKind(
        "power off a host without a clean shutdown", "yurt lab fault kill-node alpha:n1", Faults.kill_node
    ),
    "start-node": FaultKind("power on a host", "yurt lab fault start-node alpha:n1", Faults.start_node),
    "stop-ctld": FaultKind("stop slurmctld cleanly", "yurt lab fault stop-ctld beta", Faults.stop_ctld),
    "kill-ctld": FaultKind("kill slurmctld; unsaved state is lost", "yurt lab fault kill-ctld beta", Faults.kill_ctld),
    "start-ctld": FaultKind("start slurmctld", "yurt lab fault start-ctld beta", Faults.start_ctld),
    "stop-dbd": FaultKind("stop the accounting daemon, slurmdbd", "yurt lab fault stop-dbd alpha", Faults.stop_dbd),
    "start-dbd": FaultKind("start the accounting daemon, slurmdbd", "yurt lab fault start-dbd alpha", Faults.start_dbd),
    "full": FaultKind("fill a disk completely", "yurt lab fault full alpha:scratch", Faults.full),
    "free": FaultKind("free the disk that `full` filled", "yurt lab fault free alpha:scratch", Faults.free),
    "link": FaultKind("connect the login hosts of the two clusters", "yurt lab fault link", Faults.link),
    "unlink": FaultKind("disconnect the login hosts of the two clusters", "yurt lab fault unlink", Faults.unlink),
}
"""Faults that take only a target. `delay` has its own options."""
