"""The faults of a campaign of races: those of one race and its clients, and those of a site or a link in a round."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from tests.campaign.race_site import SITES, Places, Racer
from yurt.lab.cluster import inside
from yurt.lab.relay import Rules
from yurt.testing.waiting import eventually

Draw = dict[str, Any]


class Spec(msgspec.Struct, frozen=True):
    """A race to submit, its fault, and the random parameters of both."""

    label: str
    contexts: tuple[str, ...]
    mode: str
    """How jobs claim; empty: yurt chooses."""
    fault: str
    draw: Draw
    requeue: bool = False
    retries: bool = False
    items: int = 0
    rest: float = 1.0
    """Seconds that its code takes."""


def submit(places: Places, client: Racer, spec: Spec, *more: str) -> subprocess.Popen[bytes]:
    words = ["run", "--race", ",".join(spec.contexts), "--name", spec.label, "--no-snapshot"]
    words += ["--race-mode", spec.mode] if spec.mode else []
    words += ["--cpus", "1", "--mem", "50", *more, *(["--requeue"] if spec.requeue else [])]
    words += ["--retries", "1"] if spec.retries else []
    words += ["--grid", f"n=0..{spec.items - 1}"] if spec.items else []
    return client.start(*words, *places.command(spec.label, spec.rest))


# Faults of a race: each submits it, and returns why it need not complete; empty if it has to


def plain(places: Places, client: Racer, spec: Spec) -> str:
    """Nothing, but nobody looks at the race for some seconds."""
    client.end(submit(places, client, spec))
    places.submitted.add(spec.label)
    time.sleep(spec.draw["pause"])
    return ""


def killed(places: Places, client: Racer, spec: Spec) -> str:
    """The client is killed while it submits the race."""
    process = submit(places, client, spec)
    time.sleep(spec.draw["seconds"])
    process.kill()
    client.end(process)
    return ""


def agents(places: Places, client: Racer, spec: Spec) -> str:
    """The client is killed while it looks at the race, several times."""
    client.end(submit(places, client, spec))
    for _try in range(3):
        process = client.start("agent", "once")
        time.sleep(spec.draw["fraction"] * 1.5)
        process.kill()
        client.end(process)
    return ""


def twins(places: Places, client: Racer, spec: Spec) -> str:
    """Several processes look at the race at once, also while it is submitted."""
    process = submit(places, client, spec)
    time.sleep(spec.draw["seconds"])
    others = [client.start("agent", "once"), client.start("ps")]
    for each in (process, *others):
        client.end(each)
    for each in [client.start(*words) for words in (["agent", "once"], ["ps"], ["agent", "once"])]:
        client.end(each)
    return ""


def held(places: Places, client: Racer, spec: Spec) -> str:
    """All jobs are held, and released at the same time."""
    client.end(submit(places, client, spec, "--hold"))
    entry = client.race(spec.label)
    if entry is None or entry.status.final:
        return ""
    jobs = [(each.run.context, f"yurt-{each.run.id}") for each in client.candidates(entry.run.id)]
    found = [(place, job) for place, name in jobs if place in SITES for job in places.jobs(place, name)]
    if spec.draw["coin"] or len(found) < len(jobs):
        client.call("release", entry.run.id)
    if found:
        with ThreadPoolExecutor(len(found)) as pool:
            list(pool.map(lambda each: places.on_ctl(each[0], "scontrol", "release", each[1]), found))
    return ""


def cancel(places: Places, client: Racer, spec: Spec) -> str:
    """The user cancels the race at any moment, perhaps while it is submitted."""
    process = submit(places, client, spec)
    if not spec.draw["coin"]:
        client.end(process)
    time.sleep(spec.draw["seconds"])
    entry = client.race(spec.label)
    if entry is not None:
        client.call("cancel", entry.run.id)
    if spec.draw["coin"]:
        client.end(process)
    return "cancelled" if entry is not None else ""


def requeue(places: Places, client: Racer, spec: Spec) -> str:
    """The winner's job is requeued while its code runs."""
    _at_winner(places, client, spec, "scontrol", "requeue")
    return ""


def scancel(places: Places, client: Racer, spec: Spec) -> str:
    """Somebody cancels the winner's job by hand."""
    return "scancelled" if _at_winner(places, client, spec, "scancel") else ""


def _at_winner(places: Places, client: Racer, spec: Spec, *argv: str) -> bool:
    """Apply a command of Slurm to the winner's job; return False if there is none."""
    client.end(submit(places, client, spec))
    won = places.winner(client, spec.label)
    if won is None or won[0] not in SITES:
        return False
    time.sleep(spec.draw["fraction"] * 2)
    jobs = places.jobs(*won)
    for job in jobs:
        places.on_ctl(won[0], *argv, job)
    places.log(f"{spec.label}: {' '.join(argv)} {jobs} on {won[0]}")
    return bool(jobs)


def preempt(places: Places, client: Racer, spec: Spec) -> str:
    """The winner's job on alpha is preempted, if it was first."""
    client.end(submit(places, client, spec))
    won = places.winner(client, spec.label)
    if won is None or won[0] != "alpha":
        return ""
    rows = places.on_ctl("alpha", "squeue", "-h", "-o", "%j %N").splitlines()
    nodes = [row.split()[1] for row in rows if row.split()[0] == won[1] and len(row.split()) == 2]
    if not nodes:
        return ""
    sbatch = ["sbatch", "-A", "lab", "-p", "short", "-w", nodes[0], "-n1", "-c8", "--mem=100", "-t", "1", "-J", "other"]
    cluster = places.sites["alpha"].cluster
    argv = [*sbatch, "-o", "/dev/null", "-D", "/tmp", "--wrap", "sleep 3"]
    words = ["runuser", "-u", "alice", "--", *argv]
    done = subprocess.run(inside(cluster.pid("login"), words), capture_output=True, text=True, check=False)
    places.log(f"{spec.label}: {done.stdout.strip()} {done.stderr.strip()} on {nodes[0]}")
    time.sleep(6)
    places.on_ctl("alpha", "scancel", "--name=other", "--state=PENDING")
    return "" if spec.requeue else "preempted"


def retry(places: Places, client: Racer, spec: Spec) -> str:
    """The race is submitted again when it is over."""
    client.end(submit(places, client, spec))
    entry = client.race(spec.label)
    deadline = time.monotonic() + 40
    while entry is not None and not entry.status.final and time.monotonic() < deadline:
        client.once()
        entry = client.race(spec.label)
    if entry is not None and entry.status.final:
        client.call("retry", entry.run.id)
    return ""


FAULTS: dict[str, tuple[int, Callable[[Places, Racer, Spec], str]]] = {
    "plain": (3, plain),
    "killed": (4, killed),
    "agents": (3, agents),
    "twins": (2, twins),
    "held": (2, held),
    "cancel": (2, cancel),
    "requeue": (2, requeue),
    "scancel": (1, scancel),
    "preempt": (1, preempt),
    "retry": (1, retry),
}
"""Faults of a race, with their weights."""


# Faults of a round: of a site, or of a link. Each ends by itself.


def calm(places: Places, draw: Draw) -> None:
    """No fault."""


def unlink(places: Places, draw: Draw) -> None:
    """The clusters do not reach each other: before the submission, or later; perhaps after that of a certain race."""
    if "after" in draw:
        eventually(lambda: draw["after"] in places.submitted, seconds=120)
    time.sleep(draw["when"])
    places.lab.faults.unlink()
    time.sleep(draw["length"])
    places.lab.faults.link()


def cut(places: Places, draw: Draw) -> None:
    """This machine does not reach a cluster."""
    time.sleep(draw["when"])
    places.lab.faults.cut(draw["site"])
    time.sleep(draw["length"])
    places.lab.faults.heal(draw["site"])


def reset(places: Places, draw: Draw) -> None:
    """Connections of this machine to a cluster end after some bytes, or are slow."""
    time.sleep(draw["when"])
    for client in places.clients:
        client.disconnect()
    rules = Rules(cut_at=int(3000 + draw["fraction"] * 40000), direction=draw["direction"], ending=draw["ending"])
    if draw["slow"]:
        rules = Rules(delay_ms=300)
    places.lab.faults.delay(draw["site"], rules)
    time.sleep(draw["length"])
    places.lab.faults.delay(draw["site"], Rules())
    for client in places.clients:
        client.disconnect()


def controller(places: Places, draw: Draw) -> None:
    """slurmctld of a cluster is stopped or killed."""
    time.sleep(draw["when"])
    site = places.sites[draw["site"]]
    with places.controllers[draw["site"]]:
        site.cluster.service("ctl", "ctld", "kill" if draw["kill"] else "stop")
        time.sleep(draw["length"] / 2)
        site.start_ctld()
        site.register_nodes()  # after a crash it lists finished jobs until the nodes register


def full(places: Places, draw: Draw) -> None:
    """The disk of a cluster is full."""
    time.sleep(draw["when"])
    places.lab.faults.full(f"{draw['site']}:scratch")
    time.sleep(draw["length"])
    places.lab.faults.free(f"{draw['site']}:scratch")


def node(places: Places, draw: Draw) -> None:
    """The first node of a cluster, which has most jobs, is powered off. Races with restarts have to complete."""
    time.sleep(draw["when"])
    places.lab.faults.kill_node(f"{draw['site']}:n1")
    time.sleep(draw["length"] / 2)
    places.lab.faults.start_node(f"{draw['site']}:n1")


ROUNDS: dict[str, tuple[int, Callable[[Places, Draw], None]]] = {
    "calm": (3, calm),
    "unlink": (3, unlink),
    "cut": (2, cut),
    "reset": (2, reset),
    "controller": (3, controller),
    "full": (1, full),
    "node": (1, node),
}
"""Faults of a round, with their weights."""
