"""Jobs that the user cancels with scancel before they start are cancelled, and not submitted again."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import msgspec
import pytest

from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from yurt.lab import Lab
from yurt.store import Store
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab


@pytest.fixture
def impatient(laptop: Laptop) -> Laptop:
    """A laptop that waits less for late files, and trusts the clocks of the lab's hosts, which are one clock."""
    laptop.environment["YURT_CLOCKS"] = "slow=14 last_refresh=1 settling=3 resubmit=2 skew=1 rest=0"
    return laptop


@pytest.fixture
def scancel(lab: Lab) -> Iterator[Ssh]:
    yield Ssh(lab)


def jobs(ssh: Ssh, context: str, run: str) -> str:
    """Return the jobs of a run that the queue lists as pending or running."""
    rows = ssh(context, "squeue -h -u alice -t PENDING,RUNNING -o '%i %j'").splitlines()  # beta prints a banner, too
    return "\n".join(row for row in rows if f"yurt-{run}" in row)


def settled(laptop: Laptop, run: str) -> list[str]:
    """Wait until a run or all tasks of a sweep are in a final state; return these states."""
    laptop.ended(run)
    shown = laptop("show", run, "--json").json["data"]
    return [row["state"] for row in shown["rows"]] if "rows" in shown else [shown["status"]["state"]]


@pytest.mark.parametrize("context", ["alpha", "beta"])
@pytest.mark.parametrize("sweep", [False, True], ids=["run", "sweep"])
def test_cancelled_while_pending(impatient: Laptop, scancel: Ssh, context: str, sweep: bool) -> None:
    later = ["--sbatch-option", "begin=now+1hour"]
    grid = ["--grid", "n=1..5"] if sweep else []
    run = impatient.run(context, *later, *grid, "true")["run"]["id"]
    assert impatient.row(run)["state"] == "queued"
    scancel(context, f"scancel {impatient.row(run)['job']}")
    assert set(settled(impatient, run)) == {"cancelled"}
    assert jobs(scancel, context, run) == "" and impatient.row(run)["job"].count(",") == 0


@pytest.mark.parametrize("context", ["alpha", "beta"])
def test_some_tasks_cancelled_while_pending(impatient: Laptop, scancel: Ssh, context: str) -> None:
    run = impatient.run(context, "--sbatch-option", "begin=now+1hour", "--grid", "n=1..6", "true")["run"]["id"]
    job = impatient.row(run)["job"]
    scancel(context, f"scancel {job}_[3-5]")

    def states() -> list[str]:
        return [row["state"] for row in impatient("show", run, "--json").json["data"]["rows"]]

    eventually(lambda: states() == ["queued"] * 3 + ["cancelled"] * 3)
    assert impatient.row(run)["job"] == job, "nothing was submitted again"
    impatient("cancel", run)


def test_while_running_a_preemption_is_told_apart(impatient: Laptop, scancel: Ssh) -> None:
    """As Slurm's records tell it apart."""
    whole = ("--nodelist", "n3", "--cpus", "8", "--no-snapshot")
    runs = [
        impatient.run("alpha", *words, "sleep", "300")["run"]["id"]
        for words in (("--partition", "scavenge", *whole), ("--nodelist", "n2", "--cpus", "1", "--no-snapshot"))
    ]
    for run in runs:
        impatient.starts(run)
    jobs = [impatient.row(run)["job"] for run in runs]
    impatient.run("alpha", *whole, "true")
    scancel("alpha", f"scancel {jobs[1]}")
    ended = [impatient.ended(run) for run in runs]
    assert [each["state"] for each in ended] == ["cancelled"] * 2
    assert re.fullmatch(r"preempted at \d\d:\d\d", ended[0]["reason"]) and not ended[1]["reason"].startswith(
        "preempted"
    )
    eventually(lambda: scancel("alpha", f"sacct -n -X -j {jobs[0]} -o State").strip() == "PREEMPTED")


def test_held_and_looked_at_later(impatient: Laptop, scancel: Ssh, lab: Lab) -> None:
    """sacct leaves such a job out of a query by name; and a restarted controller no longer vouches for it."""
    run = impatient.run("alpha", "--hold", "true")["run"]["id"]
    job = impatient.row(run)["job"]
    scancel("alpha", f"scancel {job}")
    eventually(lambda: scancel("alpha", f"sacct -n -X -j {job} -o State").startswith("CANCELLED"))
    lab.faults.stop_ctld("alpha")
    lab.faults.start_ctld("alpha")
    assert settled(impatient, run) == ["cancelled"] and jobs(scancel, "alpha", run) == ""


@pytest.mark.slow
def test_a_job_that_a_crash_lost_is_submitted_again(impatient: Laptop, scancel: Ssh, lab: Lab) -> None:
    ledger = f"/lustre/scratch/alice/ledger-{time.time()}"
    run = impatient.run("beta", "--sbatch-option", "begin=now+20", "sh", "-c", f"echo ran >> {ledger}")["run"]["id"]
    lab.faults.kill_ctld("beta")  # its state was not saved yet
    lab.faults.start_ctld("beta")
    assert impatient.ended(run)["state"] == "completed"
    assert scancel("beta", f"cat {ledger}").splitlines()[-1] == "ran" and "ran\nran" not in scancel(
        "beta", f"cat {ledger}"
    )


def test_tasks_that_are_submitted_again_keep_their_dependency(impatient: Laptop, scancel: Ssh) -> None:
    first = impatient.run("alpha", "sh", "-c", 'until [ -e "$YURT_RUN_DIR/go" ]; do sleep 0.2; done')["run"]
    impatient.starts(first["id"])
    words = ["--after", first["id"], "--grid", "n=1..4", "--max-parallel", "1", "sh", "-c", "true"]
    sweep = impatient.run("alpha", *words)["run"]["id"]
    # As after a crash that lost one task: the index submits it again.
    job = impatient.row(sweep)["job"]
    with Store(str(impatient.home / "data" / "yurt.db")) as index:
        index.change_tasks(sweep, [1], lambda _number, status: msgspec.structs.replace(status, state="waiting"))
    impatient("ps")
    again = impatient.row(sweep)["job"].split(",")
    assert again[0] == job and len(again) == 2
    listed = scancel("alpha", f"squeue -h -j {again[1]} -o '%T %E'")
    assert listed.startswith("PENDING") and f"afterany:{job}" in listed and listed.count("after") == 2
    scancel("alpha", f"touch {first['folder']}/go")
    assert set(settled(impatient, sweep)) == {"completed"}
