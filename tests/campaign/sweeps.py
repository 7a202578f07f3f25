"""`python -m tests.campaign.sweeps`: submits sweeps under random faults. Exits with 1 on a violation.

Each task appends a line to a ledger when its code starts. It is a violation if a task started twice, is completed
without having started, or was not cancelled and did not complete.
"""

from __future__ import annotations

import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from tests.campaign.campaign import writer
from tests.campaign.driver import Stage, arguments, drive
from tests.campaign.site import SHARED, Site
from yurt.lab import Lab
from yurt.lab.relay import Rules
from yurt.store import Store

Draw = dict[str, Any]

WORK = """\
until echo "$YURT_RUN_ID $YURT_RESTARTS ${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID" >> "$0"; do sleep 0.2; done
sleep "$1"
"""


class Episode(msgspec.Struct, frozen=True):
    """One sweep on one cluster, its fault and its random parameters."""

    cluster: str
    fault: str
    label: str
    draw: Draw


class Task(msgspec.Struct, frozen=True):
    """One task as recorded in the index, and the starts of its code."""

    id: str
    fault: str
    state: str
    reason: str
    restarts: list[str]
    """YURT_RESTARTS of each start."""
    cancelled: bool
    native: str = ""
    job: str = ""
    jobs: list[str] = []
    """The job of each start: with two clients it may be another one than the index has."""
    reused: bool = False
    """Whether Slurm gave the id of its job to another run too."""


class Outcome(msgspec.Struct, frozen=True):
    """Result of a campaign."""

    tasks: list[Task]
    wrong: list[str]
    missed: list[str] = []
    """Episodes whose fault came too late to have an effect."""


def draw(seed: int, sweeps: int, only: Sequence[str] = ()) -> list[Episode]:
    names = [name for name in FAULTS if not only or name in only]
    episodes = []
    for number in range(max(sweeps, len(names))):
        fault = names[number % len(names)]
        dice = Random(f"{seed}/{fault}/{number}")
        drawn: Draw = {"tasks": dice.randint(2, 9), "rest": round(dice.uniform(0.1, 1.5), 2)}
        drawn |= {"parallel": dice.choice([None, None, 2, 4]), "fraction": round(dice.random(), 3)}
        drawn |= {"seconds": round(dice.uniform(0.1, 1.5), 2), "when": dice.choice(["before", "after"])}
        drawn |= {
            "overtaken": dice.random() < 0.5,
            "one": dice.random() < 0.5,
            "direction": dice.choice(["up", "down"]),
        }
        drawn |= {"step": dice.choice([None, 1]), "retry": dice.random() < 0.5, "killed": dice.random() < 0.5}
        cluster = "alpha" if fault == "room" else dice.choice(["alpha", "beta"])
        episodes.append(Episode(cluster, fault, f"{fault}-{number}", drawn))
    return episodes


def submit(site: Site, label: str, draw: Draw, *more: str) -> subprocess.Popen[bytes]:
    arguments = ["run", "--context", site.name, "--name", label, "--no-snapshot", "--cpus", "1", "--mem", "50", *more]
    if draw["parallel"]:
        arguments += ["--max-parallel", str(draw["parallel"])]
    grid = ["--grid", f"n=1..{draw['tasks']}"]
    return site.client.start(*arguments, *grid, "sh", "-c", WORK, f"/{SHARED}/{site.ledger}", str(draw["rest"]))


# The client is killed before, during or after the submission: at a step on the login host, or after some time


def client(site: Site, label: str, draw: Draw) -> None:
    if draw["step"]:
        site.steps.arm(1, draw["when"], "pause", program="sbatch")
    process = submit(site, label, draw)
    if draw["step"]:
        site.until(lambda: site.steps.wait_paused(0.05) or process.poll() is not None, 30, pause=0)
        if not site.steps.fired():
            site.missed.append(label)
    else:
        time.sleep(draw["seconds"])
    process.kill()
    if draw["overtaken"]:
        site.client.once()
    site.steps.release()
    site.client.end(process)


def cut(site: Site, label: str, draw: Draw) -> None:
    """The link is cut while the sweep is submitted."""
    site.measure()
    site.client.disconnect()
    total = site.up if draw["direction"] == "up" else site.down
    site.set_link_faults(
        Rules(cut_at=int(total * (0.3 + 0.7 * draw["fraction"])), direction=draw["direction"], connections=1)
    )
    site.client.end(submit(site, label, draw), seconds=60)
    site.client.disconnect()


def poll(site: Site, label: str, draw: Draw) -> None:
    """The link is cut during `yurt ps`."""
    site.measure()
    site.client.end(submit(site, label, draw))
    site.client.disconnect()
    site.set_link_faults(Rules(cut_at=int(site.down * draw["fraction"]), direction="down", connections=1))
    site.client.call("ps", seconds=60)
    site.client.disconnect()


def controller(site: Site, label: str, draw: Draw) -> None:
    """slurmctld is stopped or killed with tasks in the queue."""
    site.client.end(submit(site, label, draw))
    time.sleep(draw["seconds"])
    site.cluster.service("ctl", "ctld", "kill" if draw["killed"] else "stop")
    if draw["killed"]:
        site.crashes.append(time.time())
    try:
        site.client.call("ps")
    finally:
        site.start_ctld()
        site.register_nodes()  # after a crash the controller lists finished jobs until the nodes register


def full(site: Site, label: str, draw: Draw) -> None:
    """The disk is full during the submission, which is refused and leaves nothing behind; or it is full later."""
    if draw["one"]:
        site.client.end(submit(site, label, draw))
    site.lab.faults.full(f"{site.name}:scratch")
    try:
        if draw["one"]:
            time.sleep(draw["seconds"])
        else:
            output = site.client.end(submit(site, label, draw))
            if "disk is full" in output:
                site.client.wrong = [each for each in site.client.wrong if "disk is full" not in each]
    finally:
        site.lab.faults.free(f"{site.name}:scratch")


def twins(site: Site, label: str, draw: Draw) -> None:
    """Two yurt processes submit from one index at the same time, and one from a copy on another machine."""
    site.steps.arm(1, draw["when"], "pause", program="sbatch")
    process = submit(site, label, draw)
    site.until(lambda: site.steps.wait_paused(0.05) or process.poll() is not None, 30, pause=0)
    other = site.client.copy(f"{site.client.name}-{label}")
    site.copies.append(other)
    both = [site.client.start("agent", "once"), other.start("agent", "once")]
    time.sleep(draw["seconds"])
    site.steps.release()
    site.client.end(process)
    site.client.end(both[0])
    other.end(both[1])


def cancel(site: Site, label: str, draw: Draw) -> None:
    """One task or the whole sweep is cancelled at any moment."""
    process = submit(site, label, draw)
    if draw["when"] == "before":
        site.until(lambda: site.newest(label) or process.poll() is not None, 60, pause=0.02)
        time.sleep(draw["seconds"])
        process.kill()
    site.client.end(process)
    time.sleep(draw["fraction"])
    sweep = site.newest(label)
    if not sweep:
        site.missed.append(label)
        return
    which = [f"{sweep}.{draw['tasks'] - 1}"] if draw["one"] else [f"{sweep}.{n}" for n in range(draw["tasks"])]
    site.cancelled.update(which)
    site.client.call("cancel", which[0] if draw["one"] else sweep)
    if draw["retry"]:
        site.client.once()


def room(site: Site, label: str, draw: Draw) -> None:
    """The QOS limits queued jobs: the rest is submitted later, and the client may be killed in between."""
    process = submit(site, label, {**draw, "tasks": draw["tasks"] + 4}, "--qos", "few")
    if draw["killed"]:
        time.sleep(draw["seconds"])
        process.kill()
    site.client.end(process)


FAULTS: dict[str, Callable[[Site, str, Draw], None]] = {
    "client": client,
    "cut": cut,
    "poll": poll,
    "controller": controller,
    "full": full,
    "twins": twins,
    "cancel": cancel,
    "room": room,
}


def judge(task: Task) -> list[str]:
    """Return the violations of one task."""
    text = f"{task.id} ({task.fault}, {task.state}: {task.reason})"
    wrong = []
    if len(task.restarts) > 1:
        wrong.append(f"{text} started {len(task.restarts)} times: {task.restarts}")
    if task.state == "completed" and not task.restarts:
        wrong.append(f"{text} never started")
    if task.state == "cancelled" and "before it" in task.reason and task.restarts:
        wrong.append(f"{text} was started")
    if task.state != "completed" and not (task.cancelled and task.state == "cancelled") and not ended_by_site(task):
        wrong.append(f"{text} did not complete")
    return wrong


def ended_by_site(task: Task) -> bool:
    """Return whether the site ended the job before its code started.

    On a full disk the site's own prolog fails. After a crash Slurm reuses job ids, and cancels the new job as root
    because of a message about the old one; without accounting it does not say who. The job of another client may run
    the task then.
    """
    if task.native == "CANCELLED by 0" or (task.native == "CANCELLED" and task.reused):
        return task.job not in task.jobs
    return task.fault == "full" and task.state in ("failed", "cancelled") and not task.restarts


def campaign(lab: Lab, work: Path, runtime: Path, episodes: Sequence[Episode], patience: float) -> Outcome:
    log = (work / "log").open("w")

    def on(name: str) -> Outcome:
        site = Site(lab, name, work, runtime, writer(log))
        try:
            return on_one(site, [each for each in episodes if each.cluster == name], patience)
        finally:
            site.restore()

    names = sorted({episode.cluster for episode in episodes})
    with log, ThreadPoolExecutor(len(names)) as pool:
        found = list(pool.map(on, names))
    return Outcome(
        [task for each in found for task in each.tasks],
        [text for each in found for text in each.wrong],
        [label for each in found for label in each.missed],
    )


def on_one(site: Site, episodes: Sequence[Episode], patience: float) -> Outcome:
    site.prepare()
    (site.shared / site.ledger).write_text("")
    wrong = []
    for episode in episodes:
        site.log(f"{episode.label}: {episode.draw}")
        try:
            FAULTS[episode.fault](site, episode.label, episode.draw)
        except Exception:
            site.log(traceback.format_exc())
            wrong.append(f"{site.name} {episode.label}: the campaign itself failed, see the log")
        site.settle()
    deadline = time.monotonic() + patience
    for each in site.clients:
        while any(not entry.status.final for entry in each.entries()) and time.monotonic() < deadline:
            site.resume_nodes()
            if site.crashes:
                site.register_nodes()
            each.once()
            time.sleep(1)
    lines = (site.shared / site.ledger).read_text().splitlines()  # lines of Site.measure have more fields
    starts: dict[str, list[tuple[str, str]]] = {}
    for run, restarts, job in (line.split() for line in lines if line.count(" ") == 2):
        starts.setdefault(run, []).append((restarts, job))
    tasks = tasks_of(site, starts)
    wrong += [f"{site.name} {text}" for task in tasks for text in judge(task)]
    strays = set(starts) - {task.id for task in tasks}
    wrong += [f"{site.name} {run}: its code ran, but it is in no index" for run in sorted(strays)]
    wrong += dict.fromkeys(text for each in site.clients for text in each.wrong)
    return Outcome(tasks, wrong, site.missed)


def tasks_of(site: Site, starts: dict[str, list[tuple[str, str]]]) -> list[Task]:
    """Return the tasks of all indexes of a site, one entry per index. `starts`: YURT_RESTARTS and the job, by task."""
    found = []
    for each in site.clients:
        with Store(str(each.data / "yurt.db")) as index:
            entries = list(index.newest())
            numbers = Counter(entry.status.job for entry in entries)
            for entry in entries:
                for number in range(entry.run.tasks):
                    task = index.get(f"{entry.run.id}.{number}")
                    assert task is not None
                    fault, status = entry.run.name.partition("-")[0], task.status
                    own = starts.get(task.run.id, [])
                    found.append(
                        Task(
                            id=task.run.id,
                            fault=fault,
                            state=status.state,
                            reason=status.reason,
                            restarts=[restarts for restarts, _job in own],
                            cancelled=task.run.id in site.cancelled,
                            native=status.native,
                            job=status.job,
                            jobs=[job for _restarts, job in own],
                            reused=numbers[status.job.partition("_")[0]] > 1,
                        )
                    )
    return found


def show(outcome: Outcome) -> None:
    print(f"{'fault':<12}{'tasks':>8}{'once':>8}{'never':>8}{'twice':>8}{'cancelled':>11}")
    rows = {task.id: task for task in outcome.tasks}
    for fault in FAULTS:
        mine = [task for task in rows.values() if task.fault == fault]
        count = Counter(min(len(task.restarts), 2) for task in mine)
        ended = sum(task.state == "cancelled" for task in mine)
        print(f"{fault:<12}{len(mine):>8}{count[1]:>8}{count[0]:>8}{count[2]:>8}{ended:>11}")
    print("\n".join([*outcome.wrong, f"{len(outcome.wrong)} violations"]))


def main() -> int:
    asked = arguments("sweeps", __doc__, runs=40, faults=list(FAULTS), timeout=200)
    episodes = draw(asked.seed, asked.runs, asked.only)

    def play(stage: Stage) -> bool:
        outcome = campaign(stage.lab, stage.work, stage.runtime, episodes, asked.timeout)
        show(outcome)
        return not outcome.wrong

    return drive("sweeps", asked, f"{len(episodes)} sweeps", play)


if __name__ == "__main__":
    sys.exit(main())
