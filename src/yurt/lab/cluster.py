"""One cluster of a lab: its files, its fabric, its hosts, brought up and down.

Every step may be cut off and repeated: what is there already is kept, what is half there is redone.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Network
from pathlib import Path

from yurt.errors import NotFoundError, RefusedError
from yurt.lab import cgroups, cluster_files, network, processes
from yurt.lab.instance import Instance
from yurt.lab.shell import run, succeeds
from yurt.lab.topology import ClusterSpec, HostSpec, login_hosts

PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
UP_STATES = ("idle", "mix", "alloc", "comp", "drain", "drng", "drained", "resv", "plnd")


def inside(pid: int, argv: list[str]) -> list[str]:
    """The command line that runs `argv` as root inside the host with this first process."""
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
    def mark(self) -> str:
        return f"{self.instance.mark}{self.spec.name}/"

    def limits(self, machine: cgroups.Limits) -> cgroups.Limits:
        """How this cluster holds jobs to their memory, on a machine that could do so that way."""
        return machine if self.spec.memory_limits else "none"

    def pids(self) -> dict[str, int]:
        """Host name -> first process, of the hosts that are alive; the fabric is one of them."""
        return {mark.rpartition("/")[2]: pid for mark, pid in processes.marked(self.mark).items()}

    def pid(self, host: str) -> int:
        """The first process of a host that must be up."""
        if host != "fabric" and self.spec.host(host) is None:
            names = ", ".join(each.name for each in self.spec.hosts)
            raise NotFoundError(f"{self.spec.name} has no host '{host}'; it has {names}", code="not-found")
        pid = self.pids().get(host)
        if pid is None:
            raise RefusedError(
                f"host '{host}' of {self.spec.name} is not up",
                code="lab-down",
                hint=f"start it: yurt lab up {self.spec.name}",
            )
        return pid

    def service(self, host: str, service: str, action: str) -> None:
        """Start, stop or kill a service of a host, and wait until that is so."""
        run(inside(self.pid(host), ["bash", "/etc/lab/service.sh", service, action]), code="lab-fault-failed")

    def write_files(self, block: IPv4Network, limits: cgroups.Limits, settings: Mapping[str, str]) -> None:
        cluster_files.write(self.instance, self.spec, block, limits, settings)

    def reconfigure(self, limits: cgroups.Limits, settings: Mapping[str, str]) -> None:
        """Write slurm.conf anew and have the running daemons read it. RefusedError if Slurm does not accept it."""
        cluster_files.write_slurm(self.instance, self.spec, limits, settings)
        argv = inside(self.pid("ctl"), ["scontrol", "reconfigure"])
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode:
            words = done.stderr.strip().partition("\n")[0].removeprefix("scontrol: error: ")
            raise RefusedError(f"{self.spec.name}: Slurm refused it: {words}", code="lab-setting-refused")

    def boot(self, block: IPv4Network, limits: cgroups.Limits, only: Collection[str] = ()) -> None:
        """Start the fabric and all hosts (or some) that are not alive, and connect them.

        On return the hosts are alive; their services are on their way up.
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
        self._launch("fabric", [*argv, "bash", script, str(self.folder), f"{self.mark}fabric"], [])
        self._wait(lambda: (self.folder / "fabric.ready").exists() and "fabric" in self.pids(), "fabric", 90)

    def _start_host(self, host: HostSpec, fabric: int, limits: cgroups.Limits) -> None:
        try:
            joins = cgroups.join_files(limits, f"{self.instance.group}/{self.spec.name}/{host.name}")
        except OSError as error:
            raise self._boot_error(host.name, f"got no control group ({error.strerror})") from None
        script = str(Path(__file__).with_name("boot") / "host.sh")
        argv = ["nsenter", "--mount", "-t", str(fabric)]
        argv += ["unshare", "--net", "--cgroup", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child"]
        argv += _clock_since_boot()
        argv += ["bash", script, str(self.folder), host.name, f"{self.mark}{host.name}"]
        self._launch(host.name, argv, [str(path) for path in joins])

    def _launch(self, name: str, argv: list[str], joins: list[str]) -> None:
        """Start a host's first process, detached from this one, in its control groups."""
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
        """Wait until the services of all hosts (or some) are started and Slurm sees those that are nodes."""
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
            raise self._boot_error(name, "died while booting")
        return Path(f"/proc/{pid}/root/run/lab/ready").exists()

    def node_states(self) -> dict[str, str]:
        """Slurm's word for each node; 'unknown' while the controller does not answer."""
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

    def _boot_error(self, name: str, what: str) -> RefusedError:
        log = self.folder / "hosts" / f"{name}.boot.log"
        if name == "slurm":
            states = ", ".join(f"{node} {state}" for node, state in self.node_states().items())
            what += f" ({states})"
        words = log.read_text(errors="replace").strip().splitlines()[-1:] if log.exists() else []
        return RefusedError(
            f"{self.spec.name}: {name} {what}" + "".join(f": {line}" for line in words),
            code="lab-boot-failed",
            hint=f"logs are in {self.folder / 'hosts'}; start afresh: yurt lab down --wipe && yurt lab up",
        )

    def shut_down(self) -> None:
        """Stop the controller's daemons in order, then power every host off. Repeats do nothing."""
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
        """The kernel lets go of the disk images a moment after the last host is gone."""
        deadline = time.monotonic() + wait
        while time.monotonic() < deadline:
            backing = run(["losetup", "--list", "--noheadings", "--output", "BACK-FILE"])
            if str(self.folder / "images") + "/" not in backing:
                return
            time.sleep(0.05)


def _clock_since_boot() -> list[str]:
    """A host's uptime starts at zero, or Slurm would not believe that a node was switched off and on."""
    if not Path("/proc/self/ns/time").exists():
        return []
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    return ["--time", "--boottime", str(-int(uptime))]
