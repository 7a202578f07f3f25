"""What jobs of the lab used that ended in every way: requeued, preempted, killed, on a full disk."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator

import pytest

from tests.burning import burn, check_steps, used
from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from yurt.lab import Lab
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.slow

Submit = Callable[..., str]


@pytest.fixture
def submit(laptop: Laptop) -> Iterator[Submit]:
    """Submits runs that do not outlive the test."""
    runs: list[str] = []

    def submitted(context: str, *words: str) -> str:
        runs.append(laptop.run(context, *words)["run"]["id"])
        return runs[-1]

    burn(laptop)
    yield submitted
    if runs:
        laptop.quick("cancel", *runs)


def measured(laptop: Laptop, run: str, mb: int) -> None:
    """Wait until a running run shows that much memory, and again."""
    eventually(lambda: (used(laptop, run).get("memory_mb") or 0) >= mb and used(laptop, run)["seconds"] >= 1.5)


def test_steps_without_control_groups(laptop: Laptop) -> None:
    check_steps(laptop, "beta")


@pytest.mark.parametrize("context", ["alpha", "beta"])
def test_out_of_memory(laptop: Laptop, submit: Submit, context: str) -> None:
    """Also if the memory rises fast, what is recorded is at least near the limit. A control group knows it for sure."""
    run = submit(context, "--mem", "200M", "--time", "5", "burn.py", "500", "20")
    assert laptop.ended(run)["state"] == "out_of_memory"
    why = laptop.quick("why", run).out
    found = used(laptop, run)
    assert found["memory_limit_mb"] == 200 and ("memory_mb" in found or context == "beta"), found
    assert 180 <= found.get("memory_mb", 200) <= 550, found
    assert "limit of 200 MB" in why and ("; measured: " in why) == ("memory_mb" in found), why


@pytest.mark.parametrize("context", ["alpha", "beta"])
def test_short_job(laptop: Laptop, submit: Submit, context: str) -> None:
    run = submit(context, "--mem", "300M", "--time", "5", "burn.py", "150", "0.01")
    assert laptop.ended(run)["state"] == "completed"
    found = used(laptop, run)
    assert 145 <= found.get("memory_mb", 150) <= 180, found
    assert "memory_mb" in found or context == "beta"  # the control group knows


def test_requeued(laptop: Laptop, lab: Lab, submit: Submit) -> None:
    """Time is that of both starts, memory that of the larger."""
    command = 'if [ "$YURT_RESTARTS" = 0 ]; then python3 burn.py 200 600; else python3 burn.py 60 2; fi'
    run = submit("alpha", "--requeue", "--mem", "400M", "--time", "5", "sh", "-c", command)
    laptop.starts(run)
    measured(laptop, run, 190)
    before = used(laptop, run)
    Ssh(lab)("alpha", f"scontrol requeue {laptop.row(run)['job']}")
    ended = laptop.ended(run)
    assert ended["state"] == "completed" and ended["restarts"] == 1, ended
    found = used(laptop, run)
    assert 190 <= found["memory_mb"] <= 235, found
    assert found["seconds"] >= before["seconds"] + 2 and found["cpu_seconds"] >= before["cpu_seconds"] + 1.9, found
    assert found["cpu_seconds"] <= found["seconds"] * 1.2 + 1


def test_preempted(laptop: Laptop, submit: Submit) -> None:
    where = ("--nodelist", "n3", "--cpus", "8", "--mem", "300M")
    run = submit("alpha", "--partition", "scavenge", *where, "burn.py", "100", "600")
    laptop.starts(run)
    measured(laptop, run, 95)
    submit("alpha", *where, "true")
    ended = laptop.ended(run)
    assert ended["state"] == "cancelled" and re.fullmatch(r"preempted at \d\d:\d\d", ended["reason"]), ended
    found = used(laptop, run)
    assert 95 <= found["memory_mb"] <= 130 and found["cpu_seconds"] > 0.5, found


def test_time_limit(laptop: Laptop, submit: Submit) -> None:
    run = submit("beta", "--time", "1", "--mem", "300M", "sh", "-c", "python3 burn.py 100 3; sleep 300")
    assert laptop.ended(run)["state"] == "timeout"
    found = used(laptop, run)
    assert 95 <= found["memory_mb"] <= 130 and found["seconds"] > 50 and 2.9 <= found["cpu_seconds"] < 8, found


@pytest.mark.parametrize("context", ["alpha", "beta"])
def test_cancelled_and_killed(laptop: Laptop, lab: Lab, submit: Submit, context: str) -> None:
    """Of a job that Slurm kills without warning, the samples say what it had used."""
    runs = [submit(context, "--mem", "700M", "--time", "5", "burn.py", "200", "600") for _each in range(2)]
    for run in runs:
        laptop.starts(run)
        measured(laptop, run, 190)
    assert laptop.quick("cancel", runs[0]).code == 0
    Ssh(lab)(context, f"scancel --signal=KILL --full {laptop.row(runs[1])['job']}")
    for run in runs:
        assert laptop.ended(run)["state"] != "completed"
        laptop.quick("ps")
        found = used(laptop, run)
        assert 190 <= found["memory_mb"] <= 230 and found["cpu_seconds"] > 0, found


def test_full_disk_of_the_run_folder(laptop: Laptop, lab: Lab, submit: Submit) -> None:
    """The run completes when there is room again; what was measured until then may be lost."""
    run = submit("alpha", "--mem", "400M", "--time", "5", "sh", "-c", "python3 burn.py 100 6.125 > /dev/null")
    laptop.starts(run)
    lab.faults.full("alpha:scratch")
    try:
        eventually(
            lambda: (
                subprocess.run(["pgrep", "-f", "burn.py 100 6.125"], capture_output=True, check=False).returncode != 0
            )
        )
    finally:
        lab.faults.free("alpha:scratch")
    assert laptop.ended(run)["state"] == "completed"
    found = used(laptop, run)
    assert found["cpu_seconds"] >= 6 and 95 <= found.get("memory_mb", 100) <= 130, found
