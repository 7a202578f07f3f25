"""Staged inputs and outputs on two clusters: success, cancel, preemption, time limit, full disks, a lost node."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.laptop import Laptop
from yurt.lab import Lab
from yurt.testing.runs import PATIENT
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab

WRITES = 'echo early > "$YURT_STAGE/tables/early"; echo begun'
WAITS = "while :; do sleep 0.2; done"
STUBBORN = f"trap '' TERM; {WRITES}; {WAITS}"

MANY = """\
import os, pathlib, time
tables = pathlib.Path(os.environ["YURT_STAGE"], "tables")
for number in range(30000):
    (tables / str(number)).write_text("x")
(tables / "large").write_bytes(b"x" * 5_000_000)
print("begun", flush=True)
time.sleep(600)
"""
"""More files than can be copied within the KillWait of the lab."""


def begun(laptop: Laptop, run: str) -> Callable[[], bool]:
    return lambda: "begun" in laptop.quick("logs", run).out


def cancelled_later(laptop: Laptop, context: str, *words: str) -> str:
    """Submit a run that must not outlive its test; return its id."""
    run: str = laptop.run(context, *words)["run"]["id"]
    return run


def files(laptop: Laptop, run: str) -> set[str]:
    found = laptop.quick("show", run, "--json").json["data"]["on_site"]
    return {each["path"] for each in found["files"]}


@pytest.mark.parametrize("context", ["alpha", "beta"])
def test_in_out_and_cancel(laptop: Laptop, context: str) -> None:
    script = 'cp "$YURT_STAGE/data/one" "$YURT_STAGE/tables/" && cp "$YURT_STAGE/data/one" "$YURT_STAGE/model.pt"'
    made = laptop.run(context, "--wait", "sh", "-c", 'mkdir -p "$YURT_OUTPUTS/data"; echo 1 > "$YURT_OUTPUTS/data/one"')
    place = f"{made['run']['folder']}/outputs/data"
    stage = ("--stage", f"data={place}", "--stage-out", "tables", "--stage-out", "model.pt=scratch:results")
    cancelled = cancelled_later(laptop, context, "--stage-out", "tables", "sh", "-c", STUBBORN)
    try:
        done = laptop.run(context, *stage, "--wait", "sh", "-c", script)
        assert done["status"]["state"] == "completed", done
        assert files(laptop, done["run"]["id"]) == {"outputs/tables/one"}
        assert done["run"]["stage"]["outputs"][1]["path"] == "/lustre/scratch/alice/results"
        eventually(begun(laptop, cancelled))
    finally:
        laptop.quick("cancel", cancelled)
    ended = laptop.ended(cancelled)
    assert (ended["state"], ended["reason"]) == ("cancelled", "cancelled")
    assert files(laptop, cancelled) == {"outputs/tables/early"}


@pytest.mark.slow
def test_more_than_fits_into_the_window(laptop: Laptop) -> None:
    (laptop.project / "many.py").write_text(MANY)
    run = cancelled_later(laptop, "alpha", "--stage-out", "tables", "many.py")
    try:
        eventually(begun(laptop, run))
    finally:
        laptop.quick("cancel", run)
    reason = laptop.ended(run)["reason"]
    assert reason.startswith("cancelled; ") and "such as tables/large) were not copied back from n" in reason
    assert "the job was killed before it was complete" in reason


@pytest.mark.slow
def test_preempted(laptop: Laptop) -> None:
    where = ("--nodelist", "n3", "--cpus", "8")
    words = ("--partition", "scavenge", *where, "--stage-out", "tables", "sh", "-c", f"{WRITES}; {WAITS}")
    run = cancelled_later(laptop, "alpha", *words)
    try:
        eventually(begun(laptop, run))
        laptop.run("alpha", *where, "--wait", "true")
        ended = laptop.ended(run)
    finally:
        laptop.quick("cancel", run)
    assert re.fullmatch(r"preempted at \d\d:\d\d", ended["reason"])
    assert files(laptop, run) == {"outputs/tables/early"}


@pytest.mark.slow
@pytest.mark.parametrize("context", ["alpha", "beta"])
def test_the_time_limit(laptop: Laptop, context: str) -> None:
    (laptop.project / "yurt.yaml").write_text("stage: {outputs: [tables], time: 50s}\n")
    run = cancelled_later(laptop, context, "--time", "1m", "sh", "-c", STUBBORN)
    ended = laptop.ended(run)
    assert (ended["state"], ended["reason"]) == ("timeout", "it reached its time limit")
    assert files(laptop, run) == {"outputs/tables/early"}


@pytest.mark.slow
def test_several_nodes(laptop: Laptop) -> None:
    script = f'uname -n > "$YURT_STAGE/tables/name"; echo begun; [ "$1" != wait ] || {WAITS}'
    words = ("--nodes", "2", "--stage-out", "tables", "sh", "-c", script, "sh")
    run = cancelled_later(laptop, "alpha", *words, "wait")
    try:
        eventually(begun(laptop, run))
    finally:
        laptop.quick("cancel", run)
    done = laptop.run("alpha", "--wait", *words, "end")
    assert done["status"]["state"] == "completed", done
    for each in (run, done["run"]["id"]):
        laptop.ended(each)
        assert len(files(laptop, each)) == 2
        assert all(name.startswith("outputs/tables/n") and name.endswith("/name") for name in files(laptop, each))


@pytest.mark.slow
def test_a_full_place(laptop: Laptop, lab: Lab) -> None:
    script = f'head -c 3000000 /dev/zero > "$YURT_STAGE/tables/zeros"; {PATIENT}'
    run = cancelled_later(laptop, "alpha", "--stage-out", "tables=project:results", "sh", "-c", script)
    try:
        eventually(begun(laptop, run))
        lab.faults.full("alpha:project")
        folder = laptop.quick("show", run, "--json").json["data"]["run"]["folder"]
        assert laptop.quick("shell", run, "--", "touch", f"{folder}/go").code == 0
        ended = laptop.ended(run)
    finally:
        lab.faults.free("alpha:project")
        laptop.quick("cancel", run)
    assert (ended["state"], ended["exit_code"]) == ("failed", 74)
    assert "(3.0 MB) could not be copied to project:results: no space left" in ended["reason"]
    assert ended["reason"].endswith("it is in the outputs of the run instead")
    assert files(laptop, run) == {"outputs/tables/zeros"}


@pytest.mark.slow
def test_a_lost_node(laptop: Laptop, lab: Lab) -> None:
    run = cancelled_later(
        laptop, "alpha", "--nodelist", "n3", "--stage-out", "tables", "sh", "-c", f"{WRITES}; {WAITS}"
    )
    try:
        eventually(begun(laptop, run))
        lab.faults.kill_node("alpha:n3")
        ended = laptop.ended(run)
    finally:
        laptop.quick("cancel", run)
        lab.faults.start_node("alpha:n3")
    assert ended["reason"].endswith("; output tables was not copied back from the disk of n3"), ended


@pytest.mark.slow
def test_a_killwait_of_thirty_seconds(laptop: Laptop, lab: Lab) -> None:
    lab.configure("alpha", {"KillWait": "30"})
    (laptop.project / "many.py").write_text(MANY.replace("30000", "8000"))
    run = ""
    try:
        assert laptop.quick("context", "probe", "alpha").code == 0
        run = cancelled_later(
            laptop, "alpha", "--stage-out", "tables", "sh", "-c", "trap '' TERM; python3 many.py; sleep 600"
        )
        eventually(begun(laptop, run))
        laptop.quick("cancel", run)
        ended = laptop.ended(run)
    finally:
        lab.configure("alpha", {"KillWait": ""})
        laptop.quick("cancel", run)
        laptop.quick("context", "probe", "alpha")
    assert (ended["state"], ended["reason"]) == ("cancelled", "cancelled")
    found = laptop.quick("show", run, "--json").json["data"]["on_site"]["parts"]["outputs"]
    assert (found["files"], found["bytes"]) == (8001, 5_008_000)


@pytest.mark.slow
@pytest.mark.parametrize("context", ["alpha", "beta"])
def test_out_of_memory(laptop: Laptop, context: str) -> None:
    (laptop.project / "large.py").write_text(
        "import os, pathlib, time\n"
        "pathlib.Path(os.environ['YURT_STAGE'], 'tables', 'early').write_text('x')\n"
        "held = bytearray(2_000_000_000)\n"
        "time.sleep(120)\n"  # without control groups, Slurm looks at the memory only from time to time
    )
    run = cancelled_later(laptop, context, "--mem", "200", "--stage-out", "tables", "large.py")
    ended = laptop.ended(run)
    assert ended["state"] in ("out_of_memory", "failed")
    if context == "alpha":
        assert files(laptop, run) == {"outputs/tables/early"}
    else:  # without control groups, Slurm kills the whole job at once
        lost = f"output tables was not copied back from the disk of {ended['node']}"
        assert ended["reason"].endswith(f"; {lost}") and files(laptop, run) == set()
        assert f"; {lost}\n" in laptop.quick("why", run).out
