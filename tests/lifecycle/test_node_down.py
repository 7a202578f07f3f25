"""Nodes that fail or that an administrator takes down: their runs are restarted, or end with the reason."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from tests.lifecycle.test_restarts import processes_of
from yurt.lab import Lab
from yurt.lab.cluster import inside
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab


@pytest.fixture
def laptop(laptop: Laptop) -> Laptop:
    laptop.environment["YURT_CLOCKS"] = "slow=14 last_refresh=1 forgiving=8 settling=2 lease=12"
    return laptop


@pytest.fixture
def down(lab: Lab) -> Iterator[list[str]]:
    """Nodes of alpha that a test sets down; they are resumed at the end."""
    nodes: list[str] = []
    yield nodes
    for node in nodes:
        control(lab, "update", f"nodename={node}", "state=resume")


def control(lab: Lab, *words: str, context: str = "alpha") -> int:
    argv = inside(lab.cluster(context).pid("ctl"), ["scontrol", *words])
    return subprocess.run(argv, check=False, capture_output=True).returncode


def begins(laptop: Laptop, lab: Lab, context: str, run: str) -> dict[str, Any]:
    """Wait until the script of a run or task has started, and return its status. Slurm says "running" before that."""
    laptop.starts(run.partition(".")[0])
    found = laptop.quick("show", run, "--json").json["data"]
    ssh, folder, status = Ssh(lab), found["run"]["folder"], found["status"]
    eventually(lambda: "gen.1" in ssh(context, f"ls {folder}"))
    assert isinstance(status, dict)
    return status


def break_node(laptop: Laptop, lab: Lab, down: list[str], run: str) -> str:
    """Let the node of a running run fail without a signal to the run; return the node."""
    laptop.starts(run)
    node = str(laptop.row(run)["node"]) or "n3"
    down.append(node)
    kill_silently(lab, node, run)
    return node


def kill_silently(lab: Lab, node: str, run: str) -> None:
    """Let a node of alpha fail, on which a run is running, without a signal to the run."""
    stopped = processes_of(run)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in stopped:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        if number == signal.SIGSTOP:
            assert control(lab, "update", f"nodename={node}", "state=down", "reason=test") == 0


@pytest.mark.slow
def test_a_restart_uses_a_failed_node_if_there_is_no_other(laptop: Laptop, lab: Lab, down: list[str]) -> None:
    options = ["--exclude-node", "n1,n2", "--retries", "1", "--time", "5"]
    script = '[ "$YURT_RESTARTS" = 0 ] && sleep 300; echo restarted'
    run = laptop.run("alpha", *options, "sh", "-c", script)["run"]["id"]
    begins(laptop, lab, "alpha", run)
    assert break_node(laptop, lab, down, run) == "n3"
    done = laptop("wait", run, "--timeout", "5")
    assert "it may use nodes that failed recently: n3" in done.err, done
    control(lab, "update", "nodename=n3", "state=resume")
    assert laptop.ended(run)["state"] == "completed"
    fresh = laptop.run("alpha", *options[:2], "true")
    note = "no other node can run it, so it may use nodes that failed recently: n3"
    assert fresh["warnings"] == [f"run {fresh['run']['id']}: {note}"]
    assert laptop.ended(fresh["run"]["id"])["state"] == "completed"


def test_the_advice_after_a_node_failure_works(laptop: Laptop, lab: Lab, down: list[str]) -> None:
    """As `yurt why` prints it: the run completes on another node."""
    run = laptop.run("alpha", "--time", "5", "--no-snapshot", "sleep", "300")["run"]["id"]
    begins(laptop, lab, "alpha", run)
    node = break_node(laptop, lab, down, run)
    assert laptop.ended(run)["state"] == "node_failed"
    (typed,) = re.findall("^type:  yurt (.*)$", laptop.quick("why", run).out, re.M)
    assert typed == f"retry {run} --exclude-node {node}"
    (again,) = laptop.quick(*typed.split(), "--json").json["data"]
    laptop.starts(again["run"]["id"])
    assert laptop.row(again["run"]["id"])["node"] != node
    assert laptop.quick("cancel", again["run"]["id"]).code == 0


def test_a_start_that_was_killed_with_its_node_counts(laptop: Laptop, lab: Lab, down: list[str]) -> None:
    script = '[ "$YURT_RESTARTS" = 0 ] && sleep 300; echo restarted'
    run = laptop.run("alpha", "--requeue", "--time", "5", "sh", "-c", script)["run"]["id"]
    laptop.starts(run)
    time.sleep(6)
    broken = time.time()
    break_node(laptop, lab, down, run)
    last = laptop.ended(run)
    assert (last["state"], last["restarts"]) == ("completed", 1)
    assert last["started"] < broken, "when the first start began"
    assert 4 <= last["seconds"] < last["ended"] - last["started"] - 4, "without the time between the starts"
    assert re.search(r"^took +\d+s in 2 starts$", laptop.quick("show", run).out, re.M)


@pytest.mark.parametrize("sweep", [False, True])
def test_a_restart_that_slurm_rejects_ends_the_run(laptop: Laptop, lab: Lab, down: list[str], sweep: bool) -> None:
    """The partition of the run is removed while it runs."""
    assert control(lab, "create", "partitionname=brief", "nodes=n3", "state=up") == 0
    grid = ["--grid", "n=1"] if sweep else []
    try:
        options = [*grid, "--sbatch-option", "partition=brief", "--retries", "3", "--time", "5"]
        run = laptop.run("alpha", *options, "sh", "-c", "echo begun; sleep 300")["run"]["id"]
        eventually(lambda: laptop.quick("logs", f"{run}.0" if sweep else run).out == "begun\n")
        break_node(laptop, lab, down, run)
    finally:
        eventually(lambda: control(lab, "delete", "partitionname=brief") == 0)
    done = laptop("wait", run, "--timeout", "60")
    assert done.code == 1, done
    name = f"{run}.0" if sweep else run
    status = laptop.quick("show", name, "--json").json["data"]["status"]
    assert status["state"] == "failed"
    assert status["reason"].startswith("its restart was rejected: alpha: Slurm rejected the job: invalid partition")


def test_wait_prints_why_a_run_does_not_start(laptop: Laptop, lab: Lab, down: list[str]) -> None:
    down.append("n3")
    assert control(lab, "update", "nodename=n3", "state=drain", "reason=test") == 0  # slurmd ends a state down soon
    run = laptop.run("alpha", "--nodelist", "n3", "true")["run"]["id"]
    done = laptop("wait", run, "--timeout", "6")
    assert done.code == 4
    assert f"yurt: {run} queued: a required node is down, drained or reserved; still waiting\n" in done.err
    control(lab, "update", "nodename=n3", "state=resume")
    assert laptop.ended(run)["state"] == "completed"


SLEEPS = '[ "$YURT_RESTARTS" = 0 ] && exec sleep 300; echo restarted'
"""With exec: if TERM reached `sleep` before the shell, the shell would continue and complete the first start."""


def take_down(laptop: Laptop, lab: Lab, context: str, run: str) -> str:
    """Set the node of a running run or task down, as an administrator does; return its job. Slurm sends TERM to it."""
    status = begins(laptop, lab, context, run)
    assert control(lab, "update", f"nodename={status['node']}", "state=down", "reason=test", context=context) == 0
    return str(status["job"])


@pytest.mark.parametrize("grid", [[], ["--grid", "n=1"]], ids=["run", "sweep"])
@pytest.mark.parametrize("context", ["alpha", "beta"])
def test_a_node_that_an_administrator_takes_down(laptop: Laptop, lab: Lab, context: str, grid: list[str]) -> None:
    """The job itself restarts the run."""
    run = laptop.run(context, *grid, "--retries", "1", "--time", "5m", "sh", "-c", SLEEPS)["run"]["id"]
    name = f"{run}.0" if grid else run
    take_down(laptop, lab, context, name)
    assert laptop.ended(run)["state"] == "completed"
    status = laptop.quick("show", name, "--json").json["data"]["status"]
    assert status["restarts"] == 1 and laptop.quick("logs", name).out == "restarted\n"


@pytest.mark.parametrize("retries", [0, 1])
def test_no_retry_is_left(laptop: Laptop, lab: Lab, retries: int) -> None:
    run = laptop.run("alpha", "--retries", str(retries), "--time", "5m", "sleep", "300")["run"]["id"]
    first = take_down(laptop, lab, "alpha", run)
    if retries:
        eventually(lambda: laptop.row(run)["job"] != first)
        take_down(laptop, lab, "alpha", run)
    row = laptop.ended(run)
    left = ", and no retry was left" * bool(retries)
    assert (row["state"], row["reason"]) == ("node_failed", f"its node failed{left}")
