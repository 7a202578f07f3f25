"""A lab: starts, configures and stops two real Slurm clusters on this machine."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path
from typing import Literal

import msgspec

from yurt.errors import NotFoundError, RefusedError, UserError
from yurt.lab import cgroups, client, cluster_files, network, preflight, processes, roots, versions
from yurt.lab.cluster import Cluster
from yurt.lab.faults import Faults
from yurt.lab.index import Index
from yurt.lab.instance import Instance, State, instance, parse_subnet
from yurt.lab.topology import CLUSTERS, DEFAULT_SUBNET
from yurt.model.progress import Event, Watch, unwatched


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `up`. `seconds` is the time from the start until all nodes of each cluster are up."""

    instance: str
    contexts: list[str]
    ssh_config: str
    limits: str
    slurm: str
    """The version of Slurm on both clusters."""
    seconds: dict[str, float]
    memory: int


class Lab:
    """A lab by name. Creates nothing before `up`."""

    def __init__(self, name: str = "") -> None:
        self.instance: Instance = instance(name)
        self.faults = Faults(self)

    def cluster(self, name: str) -> Cluster:
        spec = CLUSTERS.get(name)
        if spec is None:
            raise NotFoundError(
                f"cluster '{name}' not found in the lab", code="not-found", hint="use `alpha` or `beta`"
            )
        return Cluster(self.instance, replace(spec, root=str(self.root)))

    @property
    def root(self) -> Path:
        """The root file system of all hosts."""
        return roots.path(self.instance.load_state().slurm)

    @property
    def index(self) -> Index:
        """alpha's package index. It keeps its files until `down` with `wipe`."""
        return self.cluster("alpha").index

    def up(
        self,
        clusters: Sequence[str] = (),
        *,
        install: bool = False,
        link: bool | None = None,
        subnet: str = "",
        limits: Literal["auto", "v1", "v2", "none"] = "auto",
        slurm: str = "",
        watch: Watch = unwatched,
    ) -> Started:
        """Start clusters (all by default) and wait until they accept jobs. Does nothing if they run already.

        Raises before it starts anything if this machine cannot run a lab. After a failure or a
        kill at any moment, another call continues from there. `slurm` is a key of versions.RELEASES; if
        it is empty, a new lab has the Slurm of this machine.
        """
        names = list(dict.fromkeys(clusters or CLUSTERS))
        specs = [self.cluster(name).spec for name in names]
        wanted_subnet = parse_subnet(subnet or DEFAULT_SUBNET)
        preflight.check(self.instance, install=install, watch=watch)
        client.check_contexts(self.instance, specs)
        version = self._slurm_version(slurm)
        if not roots.built(version):
            preflight.check_packages((roots.BUILDER,), install=install, watch=watch)
            roots.build(version, watch=watch)
        with self.instance.locked(), roots.using(version):
            state = self._fixed_state(wanted_subnet if subnet else None, limits)
            state.slurm = version
            self.instance.save_state(state)
            chosen = [self.cluster(name) for name in names]
            if link is not None:
                state.linked = link
            seconds = self._start_or_fall_back(chosen, state, wanted_subnet, watch)
            self._wire(state)
            self.instance.save_state(state)
            contexts = client.write_contexts(self.instance, specs)
        return Started(
            instance=self.instance.name,
            contexts=contexts,
            ssh_config=str(self.instance.client / "ssh_config"),
            limits=state.limits,
            slurm=versions.installed(self.root),
            seconds=seconds,
            memory=self.memory(),
        )

    def _slurm_version(self, requested: str) -> str:
        """Return the version for roots.path. It cannot change before a wipe: Slurm does not read newer state files."""
        own = versions.series(versions.installed())
        now = self.instance.load_state().slurm
        if not requested:
            return now
        versions.check(requested)
        wanted = "" if requested == own else requested
        if wanted != now and any(self.cluster(name).has_files() for name in CLUSTERS):
            raise UserError(
                f"lab '{self.instance.name}' has Slurm {now or own}; --slurm cannot change the version of a lab",
                code="usage",
                hint=f"start another one with `yurt lab up --slurm {requested} --instance NAME`, "
                "or remove this one first with `yurt lab down --wipe`",
            )
        return wanted

    def _fixed_state(self, subnet: IPv4Network | None, limits: str) -> State:
        """Return the saved state with its limits chosen. Addresses and limits cannot change while a host runs."""
        state = self.instance.load_state()
        if self.pids() and state.block and state.limits:
            other_net = subnet is not None and not IPv4Network(state.block).subnet_of(subnet)
            if other_net or limits not in ("auto", state.limits):
                raise UserError(
                    "--subnet and --limits cannot change while the lab is running",
                    code="usage",
                    hint="stop it first with `yurt lab down`",
                )
            return state
        client.make_keys(self.instance)
        cluster_files.make_keys(self.instance)
        state.limits = self._choose_limits(limits)
        return state

    def _choose_limits(self, requested: str) -> str:
        found = cgroups.detect()
        if not cgroups.usable(found, self.instance.group):
            found = "none"
        if requested not in ("auto", "none", found):
            raise UserError(
                f"--limits: this machine has no usable cgroup {requested}",
                code="usage",
                hint="omit `--limits` to use what this machine supports",
            )
        return found if requested == "auto" else requested

    def _start_or_fall_back(
        self, chosen: list[Cluster], state: State, subnet: IPv4Network, watch: Watch
    ) -> dict[str, float]:
        """Start clusters; if Slurm does not start with cgroup v2, start again without memory limits."""
        try:
            return self._start(chosen, state, subnet, watch)
        except RefusedError:
            if state.limits != "v2":
                raise
        watch(Event("Slurm did not start with cgroup v2; starting again without memory limits"))
        for cluster in chosen:
            cluster.shut_down()
        state.limits = "none"
        return self._start(chosen, state, subnet, watch)

    def _start(self, chosen: list[Cluster], state: State, subnet: IPv4Network, watch: Watch) -> dict[str, float]:
        total = 3 * len(chosen)
        done = 0
        started = time.monotonic()

        def step(text: str) -> None:
            nonlocal done
            watch(Event(text, done, total))
            done += 1

        limits: cgroups.Limits = msgspec.convert(state.limits, cgroups.Limits)
        with network.addresses_locked():
            if state.block and self.pids() and network.lost_addresses(self.instance, IPv4Network(state.block)):
                for name in CLUSTERS:
                    self.cluster(name).shut_down()
            if not self.pids():
                block = network.choose_block(self.instance, subnet, state.block)
                state.block = str(block)
            block = IPv4Network(state.block)
            client.write_ssh_files(self.instance, block)
            self.instance.save_state(state)
            for cluster in chosen:
                step(f"{cluster.spec.name}: writing files")
                cluster.write_files(block, cluster.limits(limits), state.settings.get(cluster.spec.name, {}))
                step(f"{cluster.spec.name}: starting {len(cluster.spec.hosts)} hosts")
                cluster.boot(block, cluster.limits(limits))
        seconds: dict[str, float] = {}
        with ThreadPoolExecutor(len(chosen)) as pool:
            waiting = {pool.submit(cluster.wait_ready): cluster.spec.name for cluster in chosen}
            watch(Event("waiting for Slurm on " + ", ".join(waiting.values()), done, total))
            for future in as_completed(waiting):
                future.result()
                seconds[waiting[future]] = round(time.monotonic() - started, 2)
                left = [name for name in waiting.values() if name not in seconds]
                step(f"{waiting[future]}: ready" + (f"; waiting for Slurm on {', '.join(left)}" if left else ""))
        watch(Event("ready", total, total))
        return seconds

    def _wire(self, state: State) -> None:
        alpha, beta = self.cluster("alpha").pids(), self.cluster("beta").pids()
        if "login" not in alpha:
            return
        if state.linked:
            network.wire(alpha["login"], beta)
        else:
            network.unwire(alpha["login"])

    def set_link(self, linked: bool) -> None:
        """Connect or disconnect the login hosts of the two clusters. Saved for the next `up`."""
        state = self.instance.load_state()
        state.linked = linked
        if not {"login"} <= set(self.cluster("alpha").pids()) or not self.cluster("beta").pids():
            raise RefusedError(
                "both clusters must be running to change the link between them",
                code="lab-down",
                hint="start them with `yurt lab up`",
            )
        self._wire(state)
        self.instance.save_state(state)

    def configure(self, cluster: str, settings: Mapping[str, str]) -> dict[str, str]:
        """Change settings of a running cluster's slurm.conf. An empty value restores the lab's own setting.

        Returns all changed settings; they stay until `down --wipe`. Only settings that Slurm applies
        without a restart, such as KillWait, take effect immediately.
        """
        one = self.cluster(cluster)
        one.pid("ctl")
        for name, value in settings.items():
            if not re.fullmatch(r"[A-Za-z]+", name) or not value.isprintable():
                line = f"{name}={value}"
                raise UserError(
                    f"{line!r} is not a setting of slurm.conf",
                    code="usage",
                    hint="for example: `yurt lab set alpha KillWait=30`",
                )
        with self.instance.locked():
            state = self.instance.load_state()
            new = {name.lower() for name in settings}  # Slurm ignores the case of names
            kept = {name: value for name, value in state.settings.get(cluster, {}).items() if name.lower() not in new}
            changed = {**kept, **{name: value for name, value in settings.items() if value}}
            limits = one.limits(msgspec.convert(state.limits, cgroups.Limits))
            try:
                one.reconfigure(limits, changed)
            except RefusedError:
                cluster_files.write_slurm(self.instance, one.spec, limits, state.settings.get(cluster, {}))
                one.service("ctl", "ctld", "start")  # slurmctld exits if it cannot read its configuration
                raise
            state.settings[cluster] = changed
            self.instance.save_state(state)
        return changed

    def start_host(self, cluster: str, host: str) -> None:
        """Power on one host and wait until it is ready."""
        one = self.cluster(cluster)
        state = self.instance.load_state()
        one.pid("fabric")
        one.boot(IPv4Network(state.block), one.limits(msgspec.convert(state.limits, cgroups.Limits)), [host])
        self._wire(state)
        one.wait_ready([host])

    def down(self, clusters: Sequence[str] = (), *, wipe: bool = False, watch: Watch = unwatched) -> list[str]:
        """Stop clusters (all by default). No process, mount, namespace, link or cgroup of theirs is left.

        Disks and job history stay for the next `up`, unless `wipe`. Returns the clusters that were running or, with
        `wipe`, had files.
        """
        chosen = [self.cluster(name) for name in dict.fromkeys(clusters or CLUSTERS)]
        preflight.check_machine("down")
        if not self.instance.folder.exists() and not self.pids():
            return []
        found = [cluster.spec.name for cluster in chosen if cluster.pids() or (wipe and cluster.has_files())]
        with self.instance.locked(), ThreadPoolExecutor(len(chosen)) as pool:
            watch(Event("stopping " + ", ".join(cluster.spec.name for cluster in chosen)))
            for future in [pool.submit(cluster.shut_down) for cluster in chosen]:
                future.result()
            if not self.pids():
                cgroups.remove(self.instance.group)
            if wipe:
                watch(Event("removing the lab's files"))
                self._wipe(chosen)
        return found

    def _wipe(self, chosen: list[Cluster]) -> None:
        client.remove_contexts(self.instance, [cluster.spec for cluster in chosen])
        if len(chosen) == len(CLUSTERS):
            shutil.rmtree(self.instance.folder)
            return
        for cluster in chosen:  # the other cluster's files contain this one's public keys: keep the keys
            for part in cluster.folder.iterdir():
                if part.name != "keys":
                    shutil.rmtree(part) if part.is_dir() else part.unlink()
        state = self.instance.load_state()
        for cluster in chosen:
            state.settings.pop(cluster.spec.name, None)
        self.instance.save_state(state)

    def pids(self) -> dict[str, int]:
        """Map the mark of each running host of this lab to its first process."""
        return processes.marked(self.instance.mark)

    def memory(self) -> int:
        """Return the bytes of memory that all hosts use."""
        return sum(use.memory for use in processes.use_by_host(self.pids()).values())

    def cpu_seconds(self) -> float:
        """Return the CPU time that the running hosts have used."""
        ticks = sum(use.ticks for use in processes.use_by_host(self.pids()).values())
        return ticks / os.sysconf("SC_CLK_TCK")
