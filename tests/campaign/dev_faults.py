"""The faults of the campaign of dev nodes, and the moments of a backup or a restore at which they come."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.campaign.dev_site import DevSite, names_in
from yurt.errors import RefusedError
from yurt.lab.topology import ALICE

Draw = dict[str, Any]
Client = subprocess.Popen[bytes]

BACKUP_MOMENTS = ("begun", "part", "part", "packed", "listed")
RESTORE_MOMENTS = ("claimed", "begun", "part", "part", "swap", "ready")


def wait_for_backup(site: DevSite, before: set[str], draw: Draw) -> bool:
    """Wait for a moment of a backup; return False if it does not come."""

    def part() -> bool:
        names = names_in(site.backups) - before
        return any((site.backups / each).stat().st_size > draw["fraction"] * draw["size"] for each in names)

    def new(first: str) -> bool:
        return any(each.startswith(first) for each in names_in(site.backups) - before)

    reached: dict[str, Callable[[], bool]] = {
        "begun": lambda: bool(names_in(site.backups) - before),
        "part": part,
        "packed": lambda: new("p"),
        "listed": lambda: new("v"),
    }
    found = site.until(reached[draw["moment"]], 40, pause=0.002)
    time.sleep(draw["delay"])
    return found


def wait_for_restore(site: DevSite, node: str, run: str, draw: Draw) -> bool:
    """Wait for a moment of the restore by a run on a node; return False if it does not come."""
    own = site.root(node) / f"scratch/alice/.yurt-dev/{site.desk}"

    def has(text: str) -> bool:
        return any(text in each for each in names_in(own))

    def part() -> bool:
        folders = [own / each for each in names_in(own) if each.endswith(".restoring")]
        least = draw["fraction"] * draw["entries"]
        return any(sum(1 for _ in each.rglob("*")) > least for each in folders if each.is_dir())

    def claimed() -> bool:
        file = site.backups / "holder"
        return file.exists() and run in file.read_text()

    def ready() -> bool:
        here = Path(f"{site.root(node)}{site.workspace}/generation")
        return here.exists() and here.read_text() == str(site.generation)

    reached = {"claimed": claimed, "begun": lambda: has(".restoring"), "part": part, "ready": ready}
    reached["swap"] = lambda: has("fresh-restored") or has("swap") or ready()
    found = site.until(reached[draw["moment"]], 60, pause=0.002)
    time.sleep(draw["delay"])
    return found


def child(site: DevSite, node: str, job: str, _client: Client | None, _draw: Draw) -> bool:
    """tar or the compressor is killed, or the whole holder if none runs."""
    found = site.processes(node)
    victims = [pid for pid, name in found if name != "holder"]
    for pid in victims[:1] or [pid for pid, _ in found]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(victims) or not site.until_over(job)


def holder(site: DevSite, node: str, job: str, _client: Client | None, _draw: Draw) -> bool:
    """The process that writes backups is killed, with the programs that it started or without."""
    for pid, _name in site.processes(node):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    site.until_over(job)
    return False


def power(site: DevSite, node: str, job: str, _client: Client | None, draw: Draw) -> bool:
    """The node loses power; it comes back at once, or after the dev node has moved."""
    site.lab.faults.kill_node(f"{site.name}:{node}")
    if draw["back"]:
        site.lab.faults.start_node(f"{site.name}:{node}")
    else:
        site.off = node
    site.until_over(job)
    return False


def scancel(site: DevSite, _node: str, job: str, _client: Client | None, _draw: Draw) -> bool:
    site.as_root("scancel", job)
    site.until_over(job)
    return False


def limit(site: DevSite, _node: str, job: str, _client: Client | None, _draw: Draw) -> bool:
    """An operator lowers the time limit below the time used. Slurm acts within half a minute."""
    site.as_root("scontrol", "update", f"jobid={job}", "TimeLimit=1")
    site.until_over(job, 200)
    return False


def preempt(site: DevSite, node: str, job: str, _client: Client | None, _draw: Draw) -> bool:
    """A job of a partition with a higher tier takes the whole node."""
    login = str(site.cluster.pid(site.cluster.spec.login.name))
    own = ["nsenter", "-a", "-t", login, "-S", str(ALICE.uid), "-G", str(ALICE.uid)]
    words = ["-p", "main", "-w", node, "--exclusive", "-t", "5", "-D", "/tmp", "-o", "/dev/null", "--wrap", "sleep 300"]
    done = subprocess.run([*own, "sbatch", "--parsable", *words], check=True, capture_output=True, text=True)
    other = done.stdout.strip()
    site.until(lambda: "R" in site.as_root("squeue", "-h", "-j", other, "-o", "%t").split(), 120)
    site.as_root("scancel", other)
    site.until_over(other)
    return False


def full(site: DevSite, node: str, job: str, client: Client | None, _draw: Draw) -> bool:
    """The shared disk is full, or during a restore that of the node."""
    disk = f"{site.name}:{'scratch' if client is not None else node}"
    try:
        with suppress(RefusedError):  # the failed backup has made room meanwhile
            site.lab.faults.full(disk)
        if client is None:
            return not site.until_over(job, 20)
        site.attempt(client)
        return True
    finally:
        site.lab.faults.free(disk)


def cut(site: DevSite, _node: str, _job: str, client: Client | None, draw: Draw) -> bool:
    """The laptop loses its connection to the cluster."""
    site.lab.faults.cut(site.name)
    time.sleep(3 * draw["fraction"])
    site.lab.faults.heal(site.name)
    if client is not None:
        site.attempt(client)
    site.client.disconnect()
    return True


def laptop(site: DevSite, _node: str, _job: str, client: Client | None, _draw: Draw) -> bool:
    """yurt on the laptop is killed, with its connections."""
    if client is not None:
        client.kill()
    site.client.disconnect()
    return True


Fault = Callable[[DevSite, str, str, Client | None, Draw], bool]
"""Causes a fault and waits until it has had its effect; returns whether the dev node still runs."""

ON_BACKUP: dict[str, Fault] = {
    "child": child,
    "holder": holder,
    "power": power,
    "scancel": scancel,
    "preempt": preempt,
    "full": full,
    "limit": limit,
    "cut": cut,
    "laptop": laptop,
}
ON_RESTORE = {name: ON_BACKUP[name] for name in ("child", "holder", "power", "scancel", "preempt", "full", "cut")}
