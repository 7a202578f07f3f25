"""Saved runs that their site rejects: for now, as with a full disk, or for good."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest

from tests.calls import YURT
from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from yurt.lab import Lab
from yurt.lab.cluster import inside
from yurt.lab.faults import FILLER
from yurt.lab.relay import Rules
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab

FULL = "alpha: cannot submit the run: the disk is full"


@pytest.fixture
def ssh(lab: Lab) -> Ssh:
    return Ssh(lab)


@pytest.fixture
def laptop(laptop: Laptop) -> Laptop:
    laptop.environment["YURT_CLOCKS"] = "slow=14 last_refresh=1 forgiving=2 settling=2 lease=12 rest=0"
    return laptop


@pytest.fixture
def full(lab: Lab) -> Iterator[Callable[[], None]]:
    """Fill the disk of alpha until the test ends."""
    yield lambda: lab.faults.full("alpha:scratch")
    lab.faults.free("alpha:scratch")


def killed_upload(laptop: Laptop, lab: Lab, *words: str) -> str:
    """Kill yurt while it uploads a run to alpha; return the run."""
    (laptop.project / "large").write_bytes(os.urandom(2 << 20))
    known = {row["id"] for row in laptop.quick("ps", "--cached", "--json").json["data"]}
    laptop.quick("login", "--close", "alpha")
    lab.faults.delay("alpha", Rules(rate=200_000))
    command = [YURT, "--context", "alpha", "run", *words]
    environment = {**os.environ, **laptop.environment}
    process = subprocess.Popen(
        command, env=environment, cwd=laptop.project, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )

    def new() -> list[dict[str, str]]:
        return [row for row in laptop.quick("ps", "--cached", "--json").json["data"] if row["id"] not in known]

    try:
        eventually(lambda: bool(new()))
        time.sleep(2)
        process.send_signal(signal.SIGKILL)
        process.wait()
    finally:
        lab.faults.heal("alpha")
        laptop.quick("login", "--close", "alpha")
    (row,) = new()
    return row["id"]


@pytest.mark.slow
def test_an_interrupted_upload_to_a_full_disk_is_saved(
    laptop: Laptop, lab: Lab, ssh: Ssh, full: Callable[[], None]
) -> None:
    ledger = f"/lustre/project/alice/ledger-{time.time()}"
    run = killed_upload(laptop, lab, "sh", "-c", f"echo ran >> {ledger}")
    full()
    for _look in range(4):
        looked = laptop.quick("ps", "--json")
        (row,) = looked.json["data"]
        assert (row["id"], row["state"], row["reason"]) == (run, "waiting", FULL)
        (warning,) = looked.json["warnings"]
        assert warning == "runs on alpha are saved and not yet submitted: cannot submit the run: the disk is full"
        time.sleep(1)
    assert laptop.quick("wait", run, "--timeout", "3").code == 4
    lab.faults.free("alpha:scratch")
    assert laptop.ended(run)["state"] == "completed"
    assert ssh("alpha", f"cat {ledger}") == "ran"


def test_an_interrupted_sweep_to_a_full_disk_is_saved(
    laptop: Laptop, lab: Lab, ssh: Ssh, full: Callable[[], None]
) -> None:
    ledger = f"/lustre/project/alice/ledger-{time.time()}"
    run = killed_upload(laptop, lab, "--grid", "n=1,2", "sh", "-c", f"echo {{n}} >> {ledger}")
    full()
    for _look in range(3):
        (row,) = laptop.quick("ps", "--json").json["data"]
        assert (row["state"], row["reason"]) == ("waiting", FULL)
        time.sleep(1)
    lab.faults.free("alpha:scratch")
    assert laptop.quick("wait", run, "--timeout", "120").code == 0
    assert sorted(ssh("alpha", f"cat {ledger}").split()) == ["1", "2"]


def test_an_interrupted_upload_can_be_cancelled(laptop: Laptop, lab: Lab) -> None:
    run = killed_upload(laptop, lab, "true")
    lab.faults.full("alpha:scratch")
    try:
        assert laptop.row(run)["state"] == "waiting"
        laptop.quick("cancel", run)
    finally:
        lab.faults.free("alpha:scratch")
    assert laptop.ended(run)["state"] == "cancelled"


def test_saved_runs_wait_for_a_full_disk(laptop: Laptop, lab: Lab) -> None:
    """With one warning for all; a new run is rejected at once."""
    lab.faults.cut("alpha")
    try:
        runs = [laptop.run("alpha", "true")["run"]["id"] for _each in range(2)]
    finally:
        lab.faults.heal("alpha")
    lab.faults.full("alpha:scratch")
    try:
        looked = laptop.quick("agent", "once", "--json")
        assert looked.json["data"]["submitted"] == [] and len(looked.json["warnings"]) == 1
        rows = {row["id"]: row for row in laptop.quick("ps", "--json").json["data"]}
        assert {(rows[run]["state"], rows[run]["reason"]) for run in runs} == {("waiting", FULL)}
        refused = laptop("--context", "alpha", "run", "true")
        assert refused.code == 5 and "the disk is full" in refused.err
    finally:
        lab.faults.free("alpha:scratch")
    assert laptop.quick("wait", *runs, "--timeout", "120").code == 0


def test_a_run_that_does_not_fit_does_not_block_smaller_ones(laptop: Laptop, lab: Lab) -> None:
    large = laptop.project / "large"
    large.write_bytes(os.urandom(8 << 20))
    laptop.quick("login", "--close", "alpha")
    lab.faults.cut("alpha")
    try:
        first = laptop.run("alpha", "true")["run"]["id"]
        large.unlink()
        small = laptop.run("alpha", "true")["run"]["id"]
    finally:
        lab.faults.heal("alpha")
    lab.faults.full("alpha:scratch")
    try:
        pid, folder = lab.faults._disk("alpha:scratch")
        subprocess.run(inside(pid, ["truncate", "-s", "-3M", f"{folder}/{FILLER}"]), check=True)
        assert laptop.quick("agent", "once", "--json").json["data"]["submitted"] == [small]
        # Each yurt command tries to upload the first run again, which fills the disk for a moment.
        eventually(lambda: not Ssh(lab)("alpha", f"squeue -h -n yurt-{small} -o %i").strip())
        assert laptop.ended(small)["state"] == "completed"
        # On a slow machine, `ps` shows how much is uploaded before the upload fails.
        eventually(lambda: laptop.row(first)["reason"] == FULL)
        assert laptop.row(first)["state"] == "waiting"
    finally:
        lab.faults.free("alpha:scratch")
    assert laptop.ended(first)["state"] == "completed"


def test_an_interrupted_upload_of_a_run_that_slurm_rejects(laptop: Laptop, lab: Lab) -> None:
    run = killed_upload(laptop, lab, "--sbatch-option", "licenses=nosuch", "true")
    row = laptop.ended(run)
    assert row["state"] == "failed" and "Slurm rejected the job: Invalid license" in row["reason"]
