"""A lab: two real Slurm clusters on this one machine, brought up, asked after, taken down."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from ipaddress import IPv4Network
from typing import Literal

import msgspec

from yurt.errors import NotFoundError, RefusedError, UserError
from yurt.lab import cgroups, client, cluster_files, network, preflight, processes
from yurt.lab.cluster import Cluster
from yurt.lab.faults import Faults
from yurt.lab.instance import Instance, Memory, instance, parse_subnet
from yurt.lab.topology import CLUSTERS, DEFAULT_SUBNET
from yurt.model.progress import Event, Watch, unwatched


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """What `up` brought about. `seconds` counts from the first process to the last node idle."""

    instance: str
    contexts: list[str]
    ssh_config: str
    limits: str
    seconds: dict[str, float]
    memory: int


class Lab:
    """A lab by name. Nothing is created before `up`."""

    def __init__(self, name: str = "") -> None:
        self.instance: Instance = instance(name)
        self.faults = Faults(self)

    def cluster(self, name: str) -> Cluster:
        spec = CLUSTERS.get(name)
        if spec is None:
            raise NotFoundError(
                f"the lab has no cluster '{name}'", code="not-found", hint="its clusters are alpha and beta"
            )
        return Cluster(self.instance, spec)

    def up(
        self,
        clusters: Sequence[str] = (),
        *,
        install: bool = False,
        link: bool | None = None,
        subnet: str = "",
        limits: Literal["auto", "v1", "v2", "none"] = "auto",
        watch: Watch = unwatched,
    ) -> Started:
        """Bring clusters (all, if none is named) up, ready to take jobs. Repeats do nothing.

        Raises before anything is started where this machine cannot hold a lab. After a failure
        or a kill at any moment, calling it again goes on from there.
        """
        chosen = [self.cluster(name) for name in dict.fromkeys(clusters or CLUSTERS)]
        specs = [cluster.spec for cluster in chosen]
        wanted_subnet = parse_subnet(subnet or DEFAULT_SUBNET)
        preflight.check(self.instance, install=install, watch=watch)
        client.check_contexts(self.instance, specs)
        with self.instance.locked():
            memory = self._settle(wanted_subnet if subnet else None, limits)
            if link is not None:
                memory.linked = link
            seconds = self._start_or_fall_back(chosen, memory, wanted_subnet, watch)
            self._wire(memory)
            self.instance.remember(memory)
            names = client.write_contexts(self.instance, specs)
        return Started(
            instance=self.instance.name,
            contexts=names,
            ssh_config=str(self.instance.client / "ssh_config"),
            limits=memory.limits,
            seconds=seconds,
            memory=self.memory(),
        )

    def _settle(self, subnet: IPv4Network | None, limits: str) -> Memory:
        """What must not change while a host is alive: addresses and limits."""
        memory = self.instance.recall()
        if self.pids() and memory.block and memory.limits:
            other_net = subnet is not None and not IPv4Network(memory.block).subnet_of(subnet)
            if other_net or limits not in ("auto", memory.limits):
                raise UserError(
                    "the lab is up, and its addresses and limits cannot change meanwhile",
                    code="usage",
                    hint="yurt lab down first",
                )
            return memory
        client.make_keys(self.instance)
        cluster_files.make_keys(self.instance)
        memory.limits = self._choose_limits(limits)
        return memory

    def _choose_limits(self, asked: str) -> str:
        found = cgroups.detect()
        if not cgroups.usable(found, self.instance.group):
            found = "none"
        if asked not in ("auto", "none", found):
            raise UserError(
                f"this machine has no usable control groups of version {asked[1:]}",
                code="usage",
                hint="leave --limits out, and the lab takes what there is",
            )
        return found if asked == "auto" else asked

    def _start_or_fall_back(
        self, chosen: list[Cluster], memory: Memory, subnet: IPv4Network, watch: Watch
    ) -> dict[str, float]:
        """Start; if Slurm does not come up with version 2 of the control groups, start without any."""
        try:
            return self._start(chosen, memory, subnet, watch)
        except RefusedError:
            if memory.limits != "v2":
                raise
        watch(Event("no luck with control groups of version 2: once more, without"))
        for cluster in chosen:
            cluster.shut_down()
        memory.limits = "none"
        return self._start(chosen, memory, subnet, watch)

    def _start(self, chosen: list[Cluster], memory: Memory, subnet: IPv4Network, watch: Watch) -> dict[str, float]:
        total = 3 * len(chosen)
        done = 0
        started = time.monotonic()

        def step(text: str) -> None:
            nonlocal done
            watch(Event(text, done, total))
            done += 1

        limits: cgroups.Limits = msgspec.convert(memory.limits, cgroups.Limits)
        with network.addresses_locked():
            if memory.block and self.pids() and network.lost_addresses(self.instance, IPv4Network(memory.block)):
                for name in CLUSTERS:
                    self.cluster(name).shut_down()
            if not self.pids():
                block = network.choose_block(self.instance, subnet, memory.block)
                memory.block = str(block)
            block = IPv4Network(memory.block)
            client.write_ssh_files(self.instance, block)
            self.instance.remember(memory)
            for cluster in chosen:
                step(f"{cluster.spec.name}: writing its files")
                cluster.write_files(block, cluster.limits(limits), memory.settings.get(cluster.spec.name, {}))
                step(f"{cluster.spec.name}: starting {len(cluster.spec.hosts)} hosts")
                cluster.boot(block, cluster.limits(limits))
        seconds: dict[str, float] = {}
        with ThreadPoolExecutor(len(chosen)) as pool:
            waiting = {pool.submit(cluster.wait_ready): cluster.spec.name for cluster in chosen}
            watch(Event("waiting for Slurm on " + ", ".join(waiting.values()), done, total))
            for future in as_completed(waiting):
                future.result()
                seconds[waiting[future]] = round(time.monotonic() - started, 2)
                step(f"{waiting[future]}: ready")
        watch(Event("ready", total, total))
        return seconds

    def _wire(self, memory: Memory) -> None:
        alpha, beta = self.cluster("alpha").pids(), self.cluster("beta").pids()
        if "login" not in alpha:
            return
        if memory.linked:
            network.wire(alpha["login"], beta)
        else:
            network.unwire(alpha["login"])

    def set_link(self, linked: bool) -> None:
        """Switch the wire between the two clusters' login hosts on or off; remembered."""
        memory = self.instance.recall()
        memory.linked = linked
        if not {"login"} <= set(self.cluster("alpha").pids()) or not self.cluster("beta").pids():
            raise RefusedError("both clusters must be up to be linked", code="lab-down", hint="yurt lab up")
        self._wire(memory)
        self.instance.remember(memory)

    def configure(self, cluster: str, settings: Mapping[str, str]) -> dict[str, str]:
        """Change lines of a cluster's slurm.conf while it runs, until `down --wipe`; an empty value undoes a change.

        Returns all lines that are changed now. For settings that Slurm takes without a restart, such as KillWait.
        """
        one = self.cluster(cluster)
        one.pid("ctl")
        for name, value in settings.items():
            if not re.fullmatch(r"[A-Za-z]+", name) or not value.isprintable():
                line = f"{name}={value}"
                raise UserError(f"{line!r} is not a line of slurm.conf", code="usage", hint="KillWait=30")
        with self.instance.locked():
            memory = self.instance.recall()
            new = {name.lower() for name in settings}  # Slurm does not tell KillWait from killwait
            kept = {name: value for name, value in memory.settings.get(cluster, {}).items() if name.lower() not in new}
            changed = {**kept, **{name: value for name, value in settings.items() if value}}
            limits = one.limits(msgspec.convert(memory.limits, cgroups.Limits))
            try:
                one.reconfigure(limits, changed)
            except RefusedError:
                cluster_files.write_slurm(self.instance, one.spec, limits, memory.settings.get(cluster, {}))
                one.service("ctl", "ctld", "start")  # what it cannot read ends it
                raise
            memory.settings[cluster] = changed
            self.instance.remember(memory)
        return changed

    def start_host(self, cluster: str, host: str) -> None:
        """Power one host on again and wait until it is ready."""
        one = self.cluster(cluster)
        memory = self.instance.recall()
        one.pid("fabric")
        one.boot(IPv4Network(memory.block), one.limits(msgspec.convert(memory.limits, cgroups.Limits)), [host])
        self._wire(memory)
        one.wait_ready([host])

    def down(self, clusters: Sequence[str] = (), *, wipe: bool = False, watch: Watch = unwatched) -> None:
        """Stop clusters (all, if none is named): no process, mount, namespace, link or group is left.

        Disks and job history stay for the next `up`, unless `wipe`.
        """
        chosen = [self.cluster(name) for name in dict.fromkeys(clusters or CLUSTERS)]
        preflight.check_machine("down")
        if not self.instance.folder.exists() and not self.pids():
            return
        with self.instance.locked(), ThreadPoolExecutor(len(chosen)) as pool:
            watch(Event("stopping " + ", ".join(cluster.spec.name for cluster in chosen)))
            for future in [pool.submit(cluster.shut_down) for cluster in chosen]:
                future.result()
            if not self.pids():
                cgroups.remove(self.instance.group)
            if wipe:
                watch(Event("removing the lab's files"))
                self._wipe(chosen)

    def _wipe(self, chosen: list[Cluster]) -> None:
        client.remove_contexts(self.instance, [cluster.spec for cluster in chosen])
        if len(chosen) == len(CLUSTERS):
            shutil.rmtree(self.instance.folder)
            return
        for cluster in chosen:  # the other cluster knows this one's keys: they stay
            for part in cluster.folder.iterdir():
                if part.name != "keys":
                    shutil.rmtree(part) if part.is_dir() else part.unlink()
        memory = self.instance.recall()
        for cluster in chosen:
            memory.settings.pop(cluster.spec.name, None)
        self.instance.remember(memory)

    def pids(self) -> dict[str, int]:
        """Mark -> first process of every host of this lab that is alive."""
        return processes.marked(self.instance.mark)

    def memory(self) -> int:
        """Bytes the whole lab uses."""
        return sum(use.memory for use in processes.use_by_host(self.pids()).values())

    def cpu_seconds(self) -> float:
        """CPU time the hosts alive now have used so far."""
        ticks = sum(use.ticks for use in processes.use_by_host(self.pids()).values())
        return ticks / os.sysconf("SC_CLK_TCK")
