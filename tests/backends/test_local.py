"""Runs on this machine: shared slots, processes that die or are killed, terminals that close."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pexpect
import pytest

from tests.calls import YURT, call
from yurt.backends.local import process, waiter
from yurt.backends.local.backend import LocalBackend
from yurt.lifecycle.plan.plan import plan as planning
from yurt.lifecycle.plan.request import Request
from yurt.model.context import LOCAL
from yurt.model.run import Plan, Status
from yurt.model.state import next_status
from yurt.testing.runs import PATIENT, TICKING, Planner, follow, observe, read, ref, submit
from yurt.testing.waiting import eventually
from yurt.transport.local import LocalHost


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine with two cores, two GPUs and a project as the working directory. Its processes end with the test."""
    monkeypatch.setenv("YURT_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("YURT_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("YURT_LOCAL_CPUS", "2")
    monkeypatch.setenv("YURT_LOCAL_GPUS", "2")
    (tmp_path / "proj").mkdir()
    monkeypatch.chdir(tmp_path / "proj")
    yield tmp_path
    for folder in (tmp_path / "data").glob("projects/*/runs/*"):
        (folder / "cancel").touch()
    if (tmp_path / "data" / "slots").is_dir():
        for ticket in waiter.tickets(str(tmp_path / "data" / "slots")).values():
            os.kill(ticket["pid"], signal.SIGTERM)


@pytest.fixture
def backend(home: Path) -> LocalBackend:
    return LocalBackend(LocalHost(), home / "data" / "slots")


@pytest.fixture
def plan() -> Planner:
    def made(*words: str, cpus: int = 1, gpus: int = 0, **more: Any) -> Plan:
        resources = {"cpu": cpus, "gpu": gpus}
        return planning(LOCAL, Request(words=words, snapshot=False, flags={"resources": resources, **more})).plan

    return made


def states(backend: LocalBackend, plans: list[Plan]) -> list[str | None]:
    seen = backend.observe([ref(each) for each in plans]).runs
    return [seen[each.run.id].live for each in plans]


def go(plan: Plan) -> None:
    (Path(plan.run.folder) / "go").touch()


def running(backend: LocalBackend, plan: Plan) -> bool:
    """Return whether it runs and has passed its gate."""
    return read(backend, plan, "out.log") != ""


def may_start(backend: LocalBackend, plan: Plan) -> bool:
    """Return whether a run has its slots, or would get them now; its own process checks this repeatedly."""
    ((name, ticket),) = [each for each in waiter.tickets(str(backend.slots)).items() if each[1]["run"] == plan.run.id]
    return ticket["running"] or waiter.claim(str(backend.slots), name, ticket) == 0


def ends(backend: LocalBackend, plan: Plan) -> None:
    """Let a run finish, and wait until its slots are free."""
    go(plan)
    eventually(lambda: states(backend, [plan]) == [None])


def all_ended(group: int) -> bool:
    """Return whether no process of a group is left; zombies do not count."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _parent, its_group = file.read_text().rpartition(")")[2].split()[:3]
            if int(its_group) == group and state not in "ZX":
                return False
    return True


def group_of(plan: Plan) -> int:
    """Return the process group of a run's command."""
    return int((Path(plan.run.folder) / "child.1").read_text().split()[0])


def test_cores_are_shared_and_the_first_comes_first(backend: LocalBackend, plan: Planner) -> None:
    plans = [plan("sh", "-c", PATIENT) for _each in range(3)] + [plan("sh", "-c", PATIENT, cpus=2), plan("true")]
    for each in plans:
        submit(backend, each)
    eventually(lambda: running(backend, plans[0]) and running(backend, plans[1]))
    assert states(backend, plans) == ["running", "running", "queued", "queued", "queued"]
    waits = observe(backend, plans[2])
    assert waits.reason == "waiting: other runs use all slots of this machine" and not waits.winner
    ends(backend, plans[1])
    eventually(lambda: running(backend, plans[2]))
    # The next run needs two cores; the last one, which would fit, does not overtake it.
    assert not may_start(backend, plans[4])
    assert states(backend, plans) == ["running", None, "running", "queued", "queued"]
    ends(backend, plans[2])
    assert not may_start(backend, plans[3]) and not may_start(backend, plans[4])
    assert states(backend, plans)[3:] == ["queued", "queued"]
    go(plans[0])
    eventually(lambda: running(backend, plans[3]))
    assert states(backend, plans)[4] == "queued"
    go(plans[3])
    assert [follow(backend, each).state for each in plans] == ["completed"] * 5


def test_gpus_are_given_out_one_by_one(backend: LocalBackend, plan: Planner) -> None:
    command = ("sh", "-c", f"echo ${{CUDA_VISIBLE_DEVICES-unset}}; {PATIENT.partition('; ')[2]}")
    pair = [plan(*command, gpus=1) for _each in range(2)]
    for each in pair:
        submit(backend, each)
    eventually(lambda: all(running(backend, each) for each in pair))
    first, second = (read(backend, each, "out.log").strip() for each in pair)
    assert {first, second} == {"0", "1"}
    both = plan(*command, gpus=2)
    submit(backend, both)
    ends(backend, pair[0])
    assert follow(backend, pair[0]).state == "completed"
    assert not may_start(backend, both)
    assert states(backend, [both]) == ["queued"]
    go(pair[1])
    eventually(lambda: running(backend, both))
    assert read(backend, both, "out.log") == "0,1\n"
    none = plan("sh", "-c", "echo ${CUDA_VISIBLE_DEVICES-unset}")
    submit(backend, none)
    assert follow(backend, none).state == "completed" and read(backend, none, "out.log") == "\n"
    go(both)
    assert follow(backend, both).state == "completed"


@pytest.mark.parametrize(
    ("chosen", "seen"),
    [(None, ["unset", "1"]), ("0,1", ["0,1", "1"]), ("", ["", ""]), ("GPU-a1", ["GPU-a1", "GPU-a1"])],
)
def test_a_run_without_gpus_sees_what_no_other_run_holds(
    backend: LocalBackend, plan: Planner, monkeypatch: pytest.MonkeyPatch, chosen: str | None, seen: list[str]
) -> None:
    """As a program outside yurt; what the user has chosen stays, but for what others hold."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if chosen is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)

    def sees() -> str:
        made = plan("sh", "-c", "echo ${CUDA_VISIBLE_DEVICES-unset}")
        submit(backend, made)
        assert follow(backend, made).state == "completed"
        return read(backend, made, "out.log").rstrip("\n")

    alone = sees()
    holds = plan("sh", "-c", PATIENT, gpus=1)
    submit(backend, holds)
    eventually(lambda: running(backend, holds))
    assert [alone, sees()] == seen
    go(holds)
    assert follow(backend, holds).state == "completed"


def test_a_queued_run_can_be_cancelled(backend: LocalBackend, plan: Planner) -> None:
    hog, waits = plan("sh", "-c", PATIENT, cpus=2), plan("sh", "-c", 'echo ran > "$YURT_RUN_DIR/ran"')
    for each in (hog, waits):
        submit(backend, each)
    eventually(lambda: running(backend, hog))
    assert backend.cancel(ref(waits)) == "cancelled"
    status = follow(backend, waits)
    assert (status.state, status.reason) == ("cancelled", "cancelled before it started")
    go(hog)
    assert follow(backend, hog).state == "completed" and read(backend, waits, "ran") == ""
    assert not waiter.tickets(str(backend.slots))


def test_over_its_time_limit(backend: LocalBackend, plan: Planner) -> None:
    assert [plan("true", time=given).limit for given in (1, "90s", "1:30", "2h")] == [60, 90, 90, 7200]
    made = plan("sh", "-c", f"{{ {TICKING} }} & wait", time="2s")
    assert made.limit == 2
    submit(backend, made)
    status = follow(backend, made)
    assert (status.state, status.reason) == ("timeout", "it reached its time limit")
    eventually(lambda: all_ended(group_of(made)))


def test_a_local_run_inside_a_slurm_job(backend: LocalBackend, plan: Planner, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a shell that srun opened, Slurm's variables are set, but Slurm must not be queried about this run."""
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    made = plan("sh", "-c", 'echo "$SLURM_JOB_ID"; sleep 300', time=1)
    made = msgspec.structs.replace(made, limit=3)
    placed = submit(backend, made)
    status = follow(backend, made)
    assert read(backend, made, "out.log") == "77\n"
    assert (status.state, status.job) == ("timeout", placed.job)


def test_cancelled_at_any_moment_it_is_not_lost(
    backend: LocalBackend, plan: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YURT_LOCAL_CPUS", "24")
    plans = [plan("sh", "-c", "sleep 30") for _each in range(24)]
    for step, made in enumerate(plans):
        submit(backend, made)
        time.sleep(step * 0.003)
        backend.cancel(ref(made))
    found = [follow(backend, made) for made in plans]
    assert {status.state for status in found} == {"cancelled"}, found


def pid_of_job(backend: LocalBackend, plan: Plan) -> int:
    return int(observe(backend, plan).job)


def test_a_killed_job_is_lost_and_its_children_are_ended(backend: LocalBackend, plan: Planner) -> None:
    made = plan("sh", "-c", f"{{ {TICKING} }} & wait")
    submit(backend, made)
    eventually(lambda: read(backend, made, "outputs/alive"))
    os.kill(pid_of_job(backend, made), signal.SIGKILL)
    eventually(lambda: observe(backend, made).live is None)
    status = follow(backend, made)
    assert (status.state, status.reason) == ("lost", "its process was killed and recorded no exit code")
    eventually(lambda: all_ended(group_of(made)))
    assert next_status(status, observe(backend, made), time.time()) == status


def test_a_machine_that_was_restarted(backend: LocalBackend, plan: Planner, home: Path) -> None:
    """The files are from an earlier boot, and its process ids are no longer valid."""
    made = plan("sleep", "300")
    submit(backend, made)
    eventually((Path(made.run.folder) / "child.1").exists)
    job = pid_of_job(backend, made)
    boot = process.boot()
    for file in (Path(made.run.folder) / "gen.1", *(home / "data" / "slots").glob("[!.]*")):
        assert boot in file.read_text()
        file.write_text(file.read_text().replace(boot, "0" * len(boot)))
    child = int((Path(made.run.folder) / "child.1").read_text().split()[0])
    try:
        seen = observe(backend, made)
        assert seen.live is None, "a process of another boot was taken for the run"
        status = next_status(Status(state="running", attempts=1), seen, time.time())
        assert (status.state, status.reason) == ("lost", "this machine was rebooted during the run")
        assert process.born(child), "another process with the same id was killed"
        assert not waiter.tickets(str(backend.slots)), "its slot is not free"
    finally:
        os.kill(job, signal.SIGTERM)


# Tests of the command line.


def rows(*more: str) -> list[dict[str, Any]]:
    answer = call("ps", "--json", *more)
    assert answer.code == 0, answer
    found: list[dict[str, Any]] = answer.json["data"]
    return found


def test_a_waiter_killed_in_the_queue_is_replaced(home: Path) -> None:
    assert call("run", "--no-snapshot", "--cpus", "2", "sh", "-c", PATIENT).code == 0
    assert call("run", "--no-snapshot", "sh", "-c", 'echo x >> "$YURT_RUN_DIR/ledger"').code == 0
    eventually(lambda: [file for file in home.glob("data/projects/*/runs/*/out.log") if file.read_text()])
    waits, hog = rows()
    assert (waits["state"], hog["state"]) == ("queued", "running")
    os.kill(int(waits["job"]), signal.SIGKILL)
    eventually(lambda: process.born(int(waits["job"])) is None)
    again = rows()[0]
    assert again["state"] == "queued" and again["job"] != waits["job"]
    runs = next((home / "data" / "projects").glob("*/runs"))
    (runs / hog["id"] / "go").touch()
    assert call("wait", waits["id"], "--timeout", "120").code == 0
    assert (runs / waits["id"] / "ledger").read_text() == "x\n"


def test_a_client_killed_at_any_moment(home: Path) -> None:
    """Recorded runs start once; others never start."""
    ledger = home / "ledger"
    command = ["run", "--no-snapshot", "sh", "-c", f'echo "$YURT_RUN_ID" >> "{ledger}"']
    begun = time.monotonic()
    known = [call(*command).out.split()[0]]
    whole = time.monotonic() - begun
    for step in range(8):
        process = subprocess.Popen([YURT, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        time.sleep(whole * (0.4 + step * 0.1))
        process.kill()
        out, _err = process.communicate()
        known += [out.split()[0].decode()] if b"submitted" in out else []
    process = subprocess.Popen([YURT, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    there = len([*home.glob("data/projects/*/runs/*")])
    eventually(lambda: len([*home.glob("data/projects/*/runs/*")]) > there or process.poll() is not None)
    process.kill()
    process.communicate()
    found = {row["id"] for row in rows()}
    assert set(known) <= found and len(found) > 1
    assert call("wait", "--timeout", "120", *found).code == 0
    assert sorted(ledger.read_text().split()) == sorted(found)


def spawn(*words: str) -> pexpect.spawn:
    return pexpect.spawn(YURT, list(words), encoding="utf8", timeout=120, env={**os.environ, "NO_COLOR": "1"})


def test_it_outlives_its_terminal(home: Path) -> None:
    child = spawn("run", "--no-snapshot", "-f", "sh", "-c", PATIENT)
    child.expect("begun")
    child.close(force=True)  # hangs up
    (row,) = rows()
    assert row["state"] == "running"
    runs = next((home / "data" / "projects").glob("*/runs"))
    assert os.getsid(int(row["job"])) == int(row["job"]), "it must have its own session"
    (runs / row["id"] / "go").touch()
    assert call("wait", "-", "--timeout", "120").code == 0


def test_ctrl_c_while_following_leaves_the_run_alone(home: Path) -> None:
    child = spawn("run", "--no-snapshot", "-f", "sh", "-c", PATIENT)
    child.expect("begun")
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130 and "Traceback" not in child.before
    (row,) = rows()
    assert row["state"] == "running"
    for words in (["wait", "-"], ["logs", "-f", "-"], ["ps", "--watch"]):
        child = spawn(*words)
        child.expect("begun|running|run ")
        child.sendintr()
        child.expect(pexpect.EOF)
        child.close()
        assert child.exitstatus == 130, words
    assert call("cancel", "-").code == 0
    assert call("wait", "-", "--timeout", "120", "--json").json["data"][0]["status"]["state"] == "cancelled"


def test_invalid_tickets_are_ignored(backend: LocalBackend, plan: Planner) -> None:
    backend.slots.mkdir(parents=True)
    alien: dict[str, Any] = {"run": "x", "pid": os.getpid(), "born": process.born(os.getpid()), "boot": "elsewhere"}
    for name, text in {
        "1-half": '{"run": ',
        "2-list": "[]",
        "3-alien": json.dumps(alien | {"cpus": 2, "gpus": 2, "devices": [0, 1], "running": True}),
        "4-empty": "",
    }.items():
        (backend.slots / name).write_text(text)
    made = plan("true", cpus=2, gpus=2)
    submit(backend, made)
    assert follow(backend, made).state == "completed"
