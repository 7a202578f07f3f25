"""Runs longer than their time limit, on real clusters: over several jobs, no step lost, none repeated that was saved.

In `make test` pieces are short because the signal comes long before the limit; YURT_SLOW=1 adds whole minutes,
nodes that lose their power and controllers that are down when they are needed.
"""

from __future__ import annotations

import os
import signal
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.calls import call
from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from yurt.lab import Lab
from yurt.model.run import FINAL
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab

slow = pytest.mark.skipif(not os.environ.get("YURT_SLOW"), reason="takes minutes: YURT_SLOW=1")

LAST = {"alpha": "n3", "beta": "n2"}
"""A node of each cluster that others are not preempted on."""

COUNT = """\
import os, signal, sys, time

many, every, on_signal = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "yes"
saved = os.path.join(os.environ["YURT_CHECKPOINTS"], "step")
step = int(open(saved).read()) if os.path.exists(saved) else 0
asked = []
if on_signal:
    for number in (signal.SIGUSR1, signal.SIGTERM):
        signal.signal(number, lambda *_: asked.append(1))


def save():
    with open(saved + ".new", "w") as file:
        file.write(str(step))
        file.flush()
        os.fsync(file.fileno())
    os.rename(saved + ".new", saved)


while step < many:
    time.sleep(1)
    step += 1
    with open(os.path.join(os.environ["YURT_OUTPUTS"], "steps"), "a") as file:
        file.write("%d %s %.3f\\n" % (step, os.environ["YURT_RESTARTS"], time.time()))
    if every and step % every == 0:
        save()
    if asked and step < many:
        save()
        sys.exit(85)
save()  # a signal that comes while Python ends kills it, and then it is started again
"""
"""Counts, a step a second: HOW-MANY SAVE-EVERY SAVES-ON-THE-SIGNAL."""


@pytest.fixture
def laptop(laptop: Laptop) -> Laptop:
    (laptop.project / "count.py").write_text(COUNT)
    return laptop


@pytest.fixture
def ssh(lab: Lab) -> Ssh:
    return Ssh(lab)


def begin(laptop: Laptop, context: str, *words: str, requeues: int = 8, before: str = "45s") -> dict[str, Any]:
    options = ["--requeue", "--max-requeues", str(requeues), "--time", "1"]
    options += ["--signal-before", before] if before else []
    made: dict[str, Any] = laptop.run(context, *options, *words)["run"]
    return made


def finished(laptop: Laptop, run: str, seconds: float = 300) -> dict[str, Any]:
    """Its record once it has ended; until then yurt looks now and then, as somebody with `ps --watch` does."""
    deadline = time.monotonic() + seconds
    while laptop.row(run)["state"] not in FINAL:
        assert time.monotonic() < deadline, laptop("show", run).out
        time.sleep(2)
    shown: dict[str, Any] = laptop("show", run, "--json").json["data"]
    return shown


def lines(ssh: Ssh, run: dict[str, Any], name: str) -> list[str]:
    """Lines of a file in its folder, told from what beta says to everybody who logs in."""
    text = ssh(run["context"], f"sed 's/^/@/' '{run['folder']}/{name}' 2> /dev/null || true")
    return [line[1:] for line in text.splitlines() if line.startswith("@")]


def steps(ssh: Ssh, run: dict[str, Any]) -> list[tuple[int, int, float]]:
    rows = [line.split() for line in lines(ssh, run, "outputs/steps")]
    return [(int(step), int(start), float(at)) for step, start, at in rows]


def check(done: list[tuple[int, int, float]], many: int, every: int = 0) -> None:
    """All steps are there, in order; a new start goes on from the last one that was saved; no two ran at once."""
    for (step, start, at), (after, following, later) in pairwise(done):
        saved = step if not every else step // every * every
        assert (after == step + 1 and following == start) or (following > start and saved < after <= step + 1), done
        assert later >= at, done
    assert done[0][0] == 1 and done[-1][0] == many, done


def whole(run: dict[str, Any], shown: dict[str, Any], done: list[tuple[int, int, float]], *, every: int = 0) -> None:
    """It is done, over more than one start, and no step is missing or was made again without need."""
    status = shown["status"]
    assert status["state"] == "completed", (shown, done)
    check(done, int(run["command"][1]), every)
    assert status["restarts"] >= max(done[-1][1], 1)  # a signal may come after the last step, and before its end
    assert 0 < status["seconds"] <= status["ended"] - status["started"]


def preempt(ssh: Ssh, node: str) -> None:
    ssh("alpha", f"sbatch --parsable -p main -w {node} --exclusive --mem=0 -t 1 -o /dev/null --wrap 'sleep 5'")


def test_over_several_jobs(laptop: Laptop, ssh: Ssh) -> None:
    """On alpha the job is requeued, on beta, which forbids that, followed by another; with and without the signal.

    Beside them, because each takes a minute, two that are preempted: with grace one saves when it is told to.
    """
    made = {
        (context, every): begin(
            laptop, context, "-w", LAST[context], "count.py", "24", str(every), "no" if every else "yes"
        )
        for context in ("alpha", "beta")
        for every in (0, 4)
    }
    for partition, every, node in (("spot", 0, "n1"), ("scavenge", 4, "n2")):
        options = ["--requeue", "--time", "9", "-p", partition, "-w", node, "count.py", "14", str(every), "yes"]
        made[partition, every] = laptop.run("alpha", *options)["run"]
    for partition, every, node in (("spot", 0, "n1"), ("scavenge", 4, "n2")):
        eventually(lambda run=made[partition, every]: len(steps(ssh, run)) >= 6, seconds=60)  # type: ignore[misc]
        preempt(ssh, node)
    for (place, every), run in made.items():
        shown, done = finished(laptop, run["id"]), steps(ssh, run)
        whole(run, shown, done, every=every)
        if not every:
            assert len(done) == int(run["command"][1]), "no step is made twice"
        jobs = set(lines(ssh, run, "jobs"))
        assert len(jobs) == (shown["status"]["restarts"] + 1 if place == "beta" else 1)


@slow
@pytest.mark.parametrize("context", ["alpha", "beta"])
def test_whole_minutes(laptop: Laptop, ssh: Ssh, context: str) -> None:
    """150 steps of a second each, in jobs of a minute."""
    made = [
        begin(laptop, context, "count.py", "150", str(every), "no" if every else "yes", before="") for every in (0, 7)
    ]
    for every, run in zip((0, 7), made, strict=True):
        shown, done = finished(laptop, run["id"], 900), steps(ssh, run)
        whole(run, shown, done, every=every)
        assert every or len(done) == 150
        assert 3 <= shown["status"]["restarts"] <= 8


@slow
@pytest.mark.parametrize("context", ["alpha", "beta"])
def test_a_node_without_power(laptop: Laptop, ssh: Ssh, lab: Lab, context: str) -> None:
    """Slurm requeues it where it may; elsewhere yurt submits its next start. The failed node is left alone."""
    flags = ["--requeue", "--time", "9"] if context == "alpha" else ["--retries", "1", "--time", "9"]
    run = laptop.run(context, *flags, "count.py", "40", "4", "yes")["run"]
    eventually(lambda: len(steps(ssh, run)) >= 6, seconds=60)
    node = laptop.row(run["id"])["node"]
    lab.faults.kill_node(f"{context}:{node}")
    try:
        shown, done = finished(laptop, run["id"], 400), steps(ssh, run)
    finally:
        lab.faults.start_node(f"{context}:{node}")
    whole(run, shown, done, every=4)
    assert shown["status"]["node"] != node


@slow
@pytest.mark.parametrize("context", ["alpha", "beta"])
@pytest.mark.parametrize("killed", [False, True])
def test_without_a_controller_at_the_limit(laptop: Laptop, ssh: Ssh, lab: Lab, context: str, killed: bool) -> None:
    """Nobody can be asked to start it again; and worse, job.sh is killed after what was saved is saved."""
    run = begin(laptop, context, "count.py", "30", "0", "yes")
    eventually(lambda: len(steps(ssh, run)) >= 4, seconds=60)
    lab.faults.stop_ctld(context)
    try:
        eventually(lambda: lines(ssh, run, "end.1"), seconds=60)
        if killed:
            for pid in processes_of(run["id"]):
                os.kill(pid, signal.SIGKILL)
        time.sleep(30)
    finally:
        lab.faults.start_ctld(context)
    shown, done = finished(laptop, run["id"], 400), steps(ssh, run)
    whole(run, shown, done)
    assert len(done) == 30, "what it saved before it ended is not made again"


def processes_of(run: str) -> list[int]:
    """Processes on this machine, which is every host of the lab, that have a run in their arguments."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if run.encode() in words or (b"slurm_script" in words and f"/{run}" in os.readlink(folder / "cwd")):
            found.append(int(folder.name))
    return found


@slow
@pytest.mark.parametrize("flags", [["--retries", "2"], ["--requeue"]])
def test_a_node_that_cannot_launch_it(laptop: Laptop, lab: Lab, yurt_home: Path, flags: list[str]) -> None:
    """Its prolog fails: Slurm drains the node, and cancels the job, or holds it where it may be requeued."""
    prolog = next((yurt_home / "data").glob("lab/*/alpha/slurm/prolog.sh"))
    before = prolog.read_text()
    prolog.write_text(before.replace("\n", '\n[ "$SLURMD_NODENAME" != n1 ] || exit 1\n', 1))
    try:
        run = laptop.run("alpha", *flags, "--time", "5", "echo", "launched")["run"]
        shown = finished(laptop, run["id"])
    finally:
        prolog.write_text(before)
        resume = ["lab", "shell", "alpha:ctl", "--user", "root", "scontrol", "update", "NodeName=n1", "State=RESUME"]
        call(*resume, environment={"YURT_DATA_HOME": f"{yurt_home}/data", "YURT_CONFIG_HOME": f"{yurt_home}/config"})
    status = shown["status"]
    assert (status["state"], status["node"] != "n1") == ("completed", True), shown
    assert laptop("logs", run["id"]).out == "launched\n"
