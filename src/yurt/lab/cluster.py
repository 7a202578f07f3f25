"""One cluster of a lab: writes its files, starts and stops its fabric and its hosts.

Every step can be interrupted and repeated: finished parts are kept, incomplete parts are redone.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Network
from pathlib import Path

from yurt.errors import NotFoundError, RefusedError, one_of
from yurt.lab import cgroups, cluster_files, network, processes
from yurt.lab.index import Index
from yurt.lab.instance import Instance
from yurt.lab.shell import run, succeeds
from yurt.lab.topology import ClusterSpec, HostSpec, login_hosts

PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
UP_STATES = ("idle", "mix", "alloc", "comp", "drain", "drng", "drained", "resv", "plnd")


def inside(pid: int, argv: list[str]) -> list[str]:
    """Return a command line that runs `argv` as root inside the host whose first process is `pid`."""
    return ["nsenter", "-a", "-t", str(pid), "env", "-i", PATH, "HOME=/root", "LANG=C.UTF-8", *argv]


@dataclass(frozen=True)
class Cluster:
    """A cluster of one lab instance."""

    instance: Instance
    spec: ClusterSpec

    @property
    def folder(self) -> Path:
        return self.instance.folder / self.spec.name

    @property
    def index(self) -> Index:
        return Index(self.folder / "index")

    @property
    def mark(self) -> str:
        return f"{self.instance.mark}{self.spec.name}/"

    def has_files(self) -> bool:
        """Whether it was started since the last wipe. Its keys exist if any cluster of the lab was."""
        return self.folder.is_dir() and any(part.name != "keys" for part in self.folder.iterdir())

    def limits(self, machine: cgroups.Limits) -> cgroups.Limits:
        """Return how this cluster enforces memory limits, given what the machine supports."""
        return machine if self.spec.memory_limits else "none"

    def pids(self) -> dict[str, int]:
        """Map the name of each running host to its first process. Includes 'fabric'."""
        return {mark.rpartition("/")[2]: pid for mark, pid in processes.marked(self.mark).items()}

    def pid(self, host: str) -> int:
        """Return the first process of a host. Raises NotFoundError, or RefusedError if the host is not running."""
        if host != "fabric" and self.spec.host(host) is None:
            names = [each.name for each in self.spec.hosts]
            raise NotFoundError(
                f"host '{host}' not found in {self.spec.name}", code="not-found", hint=f"use {one_of(names)}"
            )
        pid = self.pids().get(host)
        if pid is None:
            raise RefusedError(
                f"host '{host}' of {self.spec.name} is not running",
                code="lab-down",
                hint=f"start it with `yurt lab up {self.spec.name}`",
            )
        return pid

    def service(self, host: str, service: str, action: str) -> None:
        """Start, stop or kill a service of a host and wait until it is started or gone."""
        run(inside(self.pid(host), ["bash", "/etc/lab/service.sh", service, action]), code="lab-fault-failed")

    def write_files(self, block: IPv4Network, limits: cgroups.Limits, settings: Mapping[str, str]) -> None:
        cluster_files.write(self.instance, self.spec, block, limits, settings)

    def reconfigure(self, limits: cgroups.Limits, settings: Mapping[str, str]) -> None:
        """Rewrite slurm.conf and make the running daemons reload it. Raises RefusedError if Slurm rejects it."""
        cluster_files.write_slurm(self.instance, self.spec, limits, settings)
        argv = inside(self.pid("ctl"), ["scontrol", "reconfigure"])
        for _attempt in range(2):
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            if "timed out" not in done.stderr:  # a busy controller; it may have done it, and it can be repeated
                break
        if done.returncode:
            message = done.stderr.strip().partition("\n")[0].removeprefix("scontrol: error: ")
            raise RefusedError(f"{self.spec.name}: Slurm rejected the setting: {message}", code="lab-setting-refused")

    def boot(self, block: IPv4Network, limits: cgroups.Limits, only: Collection[str] = ()) -> None:
        """Start and connect the fabric and all hosts (or those in `only`) that are not running.

        On return the hosts run; their services may still be starting.
        """
        wanted = [host for host in self.spec.hosts if not only or host.name in only]
        alive = self.pids()
        if "fabric" not in alive:
            processes.kill_hosts(list(alive.values()))
            self.wait_disks_released()
            self._start_fabric()
            alive = self.pids()
        for host in wanted:
            if host.name not in alive:
                self._start_host(host, alive["fabric"], limits)
        self._wait(lambda: {host.name for host in wanted} <= set(self.pids()), "hosts", 90)
        alive = self.pids()
        network.plug_in(alive["fabric"], {host.name: alive[host.name] for host in wanted})
        for host in wanted:
            if host.role == "login":
                network.plug_in_outside(self.instance, block, self.spec, host, alive[host.name])

    def _start_fabric(self) -> None:
        (self.folder / "fabric.ready").unlink(missing_ok=True)
        script = str(Path(__file__).with_name("boot") / "fabric.sh")
        argv = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child"]
        lock = [] if self.spec.root == "/" else [f"{self.spec.root}.lock"]
        self._launch("fabric", [*argv, "bash", script, str(self.folder), *lock, f"{self.mark}fabric"], [])
        self._wait(lambda: (self.folder / "fabric.ready").exists() and "fabric" in self.pids(), "fabric", 90)

    def _start_host(self, host: HostSpec, fabric: int, limits: cgroups.Limits) -> None:
        try:
            joins = cgroups.join_files(limits, f"{self.instance.group}/{self.spec.name}/{host.name}")
        except OSError as error:
            raise self._boot_error(host.name, f"could not create its cgroup ({error.strerror})") from None
        script = str(Path(__file__).with_name("boot") / "host.sh")
        argv = ["nsenter", "--mount", "-t", str(fabric)]
        argv += ["unshare", "--net", "--cgroup", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child"]
        argv += _clock_since_boot()
        argv += ["bash", script, str(self.folder), host.name, f"{self.mark}{host.name}"]
        self._launch(host.name, argv, [str(path) for path in joins])

    def _launch(self, name: str, argv: list[str], joins: list[str]) -> None:
        """Start a host's first process, detached from this one, in its cgroups."""
        join = 'while [ "$1" != -- ]; do echo $$ > "$1" || exit 1; shift; done; shift; exec "$@"'
        log = self.folder / "hosts" / f"{name}.boot.log"
        with log.open("wb") as output:
            subprocess.run(
                ["setsid", "--fork", "sh", "-c", join, "sh", *joins, "--", *argv],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                check=True,
                cwd="/",
            )

    def wait_ready(self, only: Collection[str] = (), *, timeout: float = 90) -> None:
        """Wait until the services of all hosts (or those in `only`) run and Slurm lists the nodes as up."""
        deadline = time.monotonic() + timeout
        names = [host.name for host in self.spec.hosts if not only or host.name in only]
        for name in names:
            self._wait(partial(self._host_ready, name), name, deadline - time.monotonic())
        self._wait(partial(self._nodes_ready, names), "slurm", deadline - time.monotonic())

    def _nodes_ready(self, names: Collection[str]) -> bool:
        return all(state in UP_STATES for node, state in self.node_states().items() if node in names)

    def _host_ready(self, name: str) -> bool:
        pid = self.pids().get(name)
        if pid is None:
            raise self._boot_error(name, "exited while booting")
        return Path(f"/proc/{pid}/root/run/lab/ready").exists()

    def node_states(self) -> dict[str, str]:
        """Return Slurm's state of each node; 'unknown' while the controller does not respond."""
        states = {node.name: "unknown" for node in self.spec.of_role("node")}
        try:
            answer = subprocess.run(
                inside(self.pid("ctl"), ["sinfo", "-h", "-N", "-o", "%N %t"]),
                capture_output=True,
                text=True,
                timeout=10,
                check=False,
            ).stdout
        except subprocess.TimeoutExpired:
            return states
        return states | dict(line.split()[:2] for line in answer.splitlines())

    def _wait(self, reached: Callable[[], bool], name: str, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        pause = 0.02
        while not reached():
            if time.monotonic() > deadline:
                raise self._boot_error(name, f"was not ready after {timeout:.0f} s")
            time.sleep(pause)
            pause = min(pause * 1.2, 0.2)

    def _boot_error(self, name: str, problem: str) -> RefusedError:
        log = self.folder / "hosts" / f"{name}.boot.log"
        if name == "slurm":
            states = ", ".join(f"{node} {state}" for node, state in self.node_states().items())
            problem += f" ({states})"
        lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
        return RefusedError(
            f"{self.spec.name}: {name} {problem}" + (f": {lines[-1]}" if lines else ""),
            code="lab-boot-failed",
            hint=f"read the logs in {self.folder / 'hosts'}, or reset the lab with `yurt lab down --wipe`",
        )

    def shut_down(self) -> None:
        """Stop the controller's daemons in order, then power off every host. Does nothing if all are off."""
        pids = self.pids()
        if "ctl" in pids:
            stop = "for name in ctld dbd database; do bash /etc/lab/service.sh $name stop; done"
            succeeds(inside(pids["ctl"], ["bash", "-c", stop]))
        fabric = [pids.pop("fabric")] if "fabric" in pids else []
        processes.kill_hosts(list(pids.values()))
        processes.kill_hosts(fabric)
        for index, (spec, _host) in enumerate(login_hosts()):
            if spec == self.spec:
                network.wait_gone(self.instance.link(index))
        self.wait_disks_released()
        cgroups.remove(f"{self.instance.group}/{self.spec.name}")

    def wait_disks_released(self, *, wait: float = 15) -> None:
        """Wait until the kernel releases the disk images, which takes a moment after the last host is gone."""
        deadline = time.monotonic() + wait
        while time.monotonic() < deadline:
            backing = run(["losetup", "--list", "--noheadings", "--output", "BACK-FILE"])
            if str(self.folder / "images") + "/" not in backing:
                return
            time.sleep(0.05)


def _clock_since_boot() -> list[str]:
    """Return unshare options that start a host's uptime at zero: Slurm detects a reboot of a node by its uptime."""
    if not Path("/proc/self/ns/time").exists():
        return []
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    return ["--time", "--boottime", str(-int(uptime))]
