"""Runs longer than their time limit, on real clusters: no step is lost, and no saved step is repeated.

In `make test` starts are short because the signal comes long before the limit; SLOW_TESTS=1 adds starts of whole
minutes, nodes that lose power and controllers that are down when they are needed.
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
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab


LAST = {"alpha": "n3", "beta": "n2"}
"""A node of each cluster on which no test preempts jobs."""

COUNT = """\
import os, signal, sys, time

many, every, on_signal = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "yes"
stay = int(sys.argv[4]) if sys.argv[4:] and os.environ["YURT_RESTARTS"] == "0" else many
saved = os.path.join(os.environ["YURT_CHECKPOINTS"], "step")
step = int(open(saved).read()) if os.path.exists(saved) else 0
late = time.monotonic() + 120
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
    time.sleep(0.1 if sys.argv[4:] else 1)
    if step >= stay and time.monotonic() > late:
        sys.exit("no signal came")
    if step < stay:
        step += 1
        with open(os.path.join(os.environ["YURT_OUTPUTS"], "steps"), "a") as file:
            file.write("%d %s %.3f\\n" % (step, os.environ["YURT_RESTARTS"], time.time()))
    if every and step % every == 0:
        save()
    if asked and step < many:
        save()
        sys.exit(85)
save()  # a signal during Python's shutdown kills the process, and the run is started again
"""
"""Counts, one step per second: HOW-MANY SAVE-EVERY SAVES-ON-THE-SIGNAL [STAY].

With STAY it counts quickly, and its first start stops at STAY, so that a second start is needed.
"""


@pytest.fixture
def laptop(laptop: Laptop) -> Laptop:
    (laptop.project / "count.py").write_text(COUNT)
    laptop.environment["YURT_CLOCKS"] = (
        "slow=14 last_refresh=2 rest=0"  # `wait` refreshes often enough to submit the next start soon
    )
    return laptop


@pytest.fixture
def ssh(lab: Lab) -> Ssh:
    return Ssh(lab)


def begin(laptop: Laptop, context: str, *words: str, before: str = "45s") -> dict[str, Any]:
    options = ["--requeue", "--max-requeues", "8", "--time", "1"]
    options += ["--signal-before", before] if before else []
    made: dict[str, Any] = laptop.run(context, *options, *words)["run"]
    return made


def finished(laptop: Laptop, *runs: dict[str, Any], seconds: float = 300) -> list[dict[str, Any]]:
    """Wait for runs and return their statuses."""
    done = laptop("wait", *(run["id"] for run in runs), "--timeout", str(seconds), "--json")
    assert done.code in (0, 1), done
    return [entry["status"] for entry in done.json["data"]]


def lines(ssh: Ssh, run: dict[str, Any], name: str) -> list[str]:
    """Lines of a file in its run folder, without the login banner of beta."""
    text = ssh(run["context"], f"sed 's/^/@/' '{run['folder']}/{name}' 2> /dev/null || true")
    return [line[1:] for line in text.splitlines() if line.startswith("@")]


def steps(ssh: Ssh, run: dict[str, Any]) -> list[tuple[int, int, float]]:
    rows = [line.split() for line in lines(ssh, run, "outputs/steps")]
    return [(int(step), int(start), float(at)) for step, start, at in rows]


def wait_for_steps(ssh: Ssh, run: dict[str, Any], many: int) -> None:
    file = f"{run['folder']}/outputs/steps"
    until = f'until [ "$(cat {file} 2> /dev/null | wc -l)" -ge {many} ]; do sleep 0.2; done'
    ssh(run["context"], f"timeout 120 sh -c '{until}'", timeout=150)


def check(done: list[tuple[int, int, float]], many: int, every: int = 0) -> None:
    """All steps exist, in order; a new start continues from the last saved step; starts do not overlap."""
    for (step, start, at), (after, following, later) in pairwise(done):
        saved = step if not every else step // every * every
        assert (after == step + 1 and following == start) or (following > start and saved < after <= step + 1), done
        assert later >= at, done
    assert done[0][0] == 1 and done[-1][0] == many, done


def complete(
    run: dict[str, Any], status: dict[str, Any], done: list[tuple[int, int, float]], *, every: int = 0
) -> None:
    """It completed over more than one start, and no step is missing or was needlessly repeated."""
    assert status["state"] == "completed", (status, done)
    many = int(run["command"][1])
    check(done, many, every)
    assert every or len(done) == many, "no step is repeated"
    assert status["restarts"] >= max(done[-1][1], 1)  # a signal may come between the last step and the exit
    assert 0 < status["seconds"] <= status["ended"] - status["started"]


@pytest.mark.parametrize(("context", "before"), [("alpha", "55s"), ("beta", "45s")])
@pytest.mark.slow("alpha")
def test_over_several_jobs(laptop: Laptop, ssh: Ssh, context: str, before: str) -> None:
    """alpha requeues the job; beta forbids that, so another job follows; with and without the signal."""
    made = [
        begin(laptop, context, "-w", LAST[context], "count.py", "22", *more, "11", before=before)
        for more in (("0", "yes"), ("4", "no"))
    ]
    for run, status, every in zip(made, finished(laptop, *made), (0, 4), strict=True):
        complete(run, status, steps(ssh, run), every=every)
        jobs = set(lines(ssh, run, "jobs"))
        assert len(jobs) == (status["restarts"] + 1 if context == "beta" else 1)


@pytest.mark.parametrize(("partition", "node", "every"), [("spot", "n1", 0), ("scavenge", "n2", 4)])
@pytest.mark.slow("spot")
def test_preempted(laptop: Laptop, ssh: Ssh, partition: str, node: str, every: int) -> None:
    """With a grace time, as in spot, it saves on the signal; without, it continues from its last checkpoint."""
    options = ["--requeue", "--time", "9", "-p", partition, "-w", node]
    run = laptop.run("alpha", *options, "count.py", "14", str(every), "yes", "6")["run"]
    wait_for_steps(ssh, run, 6)
    ssh("alpha", f"sbatch -p main -w {node} --exclusive --mem=0 -t 1 -o /dev/null --wrap true")
    (status,) = finished(laptop, run)
    complete(run, status, steps(ssh, run), every=every)
    assert len(set(lines(ssh, run, "jobs"))) == 1


@pytest.mark.slow
@pytest.mark.parametrize("context", ["alpha", "beta"])
def test_whole_minutes(laptop: Laptop, ssh: Ssh, context: str) -> None:
    """150 steps of a second each, in jobs of a minute."""
    made = [
        begin(laptop, context, "count.py", "150", str(every), "no" if every else "yes", before="") for every in (0, 7)
    ]
    for every, run, status in zip((0, 7), made, finished(laptop, *made, seconds=900), strict=True):
        complete(run, status, steps(ssh, run), every=every)
        assert 3 <= status["restarts"] <= 8


@pytest.mark.slow
@pytest.mark.parametrize("context", ["alpha", "beta"])
def test_a_node_without_power(laptop: Laptop, ssh: Ssh, lab: Lab, context: str) -> None:
    """Slurm requeues it if allowed; otherwise yurt submits the next start. The failed node is avoided."""
    flags = ["--requeue", "--time", "9"] if context == "alpha" else ["--retries", "1", "--time", "9"]
    run = laptop.run(context, *flags, "count.py", "40", "4", "yes")["run"]
    wait_for_steps(ssh, run, 6)
    node = laptop.row(run["id"])["node"]
    lab.faults.kill_node(f"{context}:{node}")
    try:
        (status,) = finished(laptop, run, seconds=400)
    finally:
        lab.faults.start_node(f"{context}:{node}")
    complete(run, status, steps(ssh, run), every=4)
    assert status["node"] != node


@pytest.mark.slow
@pytest.mark.parametrize("context", ["alpha", "beta"])
@pytest.mark.parametrize("killed", [False, True])
def test_without_a_controller_at_the_limit(laptop: Laptop, ssh: Ssh, lab: Lab, context: str, killed: bool) -> None:
    """The job cannot be requeued at its limit; in the worse case, job.sh is killed after the checkpoint is saved."""
    run = begin(laptop, context, "count.py", "30", "0", "yes")
    wait_for_steps(ssh, run, 4)
    lab.faults.stop_ctld(context)
    try:
        eventually(lambda: lines(ssh, run, "end.1"))
        if killed:
            for pid in processes_of(run["id"]):
                os.kill(pid, signal.SIGKILL)
        time.sleep(30)
    finally:
        lab.faults.start_ctld(context)
    (status,) = finished(laptop, run, seconds=400)
    complete(run, status, steps(ssh, run))  # saved steps are not repeated


def processes_of(run: str) -> list[int]:
    """Processes with a run in their arguments, on this machine, which is every host of the lab."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if run.encode() in words or (b"slurm_script" in words and f"/{run}" in os.readlink(folder / "cwd")):
            found.append(int(folder.name))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("flags", [["--retries", "2"], ["--requeue"]])
def test_a_node_that_cannot_launch_the_job(laptop: Laptop, lab: Lab, yurt_home: Path, flags: list[str]) -> None:
    """The prolog fails: Slurm drains the node, and cancels the job, or holds it if it may be requeued."""
    prolog = next((yurt_home / "data").glob("lab/*/alpha/slurm/prolog.sh"))
    before = prolog.read_text()
    prolog.write_text(before.replace("\n", '\n[ "$SLURMD_NODENAME" != n1 ] || exit 1\n', 1))
    try:
        run = laptop.run("alpha", *flags, "--time", "5", "echo", "launched")["run"]
        (status,) = finished(laptop, run)
    finally:
        prolog.write_text(before)
        resume = ["lab", "shell", "alpha:ctl", "--user", "root", "scontrol", "update", "NodeName=n1", "State=RESUME"]
        call(*resume, environment={"YURT_DATA_HOME": f"{yurt_home}/data", "YURT_CONFIG_HOME": f"{yurt_home}/config"})
    assert (status["state"], status["node"] != "n1") == ("completed", True), status
    assert laptop("logs", run["id"]).out == "launched\n"
