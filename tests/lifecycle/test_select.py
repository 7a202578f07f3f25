"""--filter of cancel, retry, fetch, logs and wait selects the matching tasks and no others."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from tests.lifecycle.test_sweeps import ended, tally
from yurt.lab import Lab
from yurt.store import Store
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab

SMALL = ["--cpus", "1", "--mem", "50"]


def states(laptop: Laptop, sweep: str) -> list[str]:
    shown: list[dict[str, Any]] = laptop("show", sweep, "--json").json["data"]["rows"]
    return [row["state"] for row in shown]


@pytest.mark.parametrize("context", ["local", "alpha", "beta"])
@pytest.mark.slow("beta")
def test_only_selected_tasks_are_cancelled(laptop: Laptop, lab: Lab, context: str) -> None:
    stop = f"/lustre/scratch/alice/stop-{time.time()}" if context != "local" else str(laptop.home / "stop")
    command = f"until [ -e {stop} ]; do sleep 0.2; done"
    hold = ["--max-parallel", "2"] if context != "local" else []
    grid = ["--grid", "lr=0.1,0.01", "--grid", "n=1..3"]
    sweep = laptop.run(context, *SMALL, *hold, *grid, "sh", "-c", command)["run"]["id"]
    eventually(lambda: tally(laptop, sweep).get("running", 0) >= 1)
    done = laptop("cancel", sweep, "--filter", "lr=0.01", "--json")
    assert done.code == 0, done
    assert [each["id"] for each in done.json["data"]] == [f"{sweep}.{number}" for number in (3, 4, 5)]
    if context == "local":
        Path(stop).touch()
    else:
        Ssh(lab)(context, f"touch {stop}")
    assert ended(laptop, sweep) == {"completed": 3, "cancelled": 3}
    assert states(laptop, sweep) == ["completed"] * 3 + ["cancelled"] * 3
    again = laptop("cancel", sweep, "--filter", "lr=0.01", "--json").json["data"]
    assert {each["note"] for each in again} == {"it had already finished"}


def test_a_cancelled_task_is_never_submitted(laptop: Laptop, lab: Lab) -> None:
    lab.faults.cut("alpha")
    file = f"/lustre/scratch/alice/ledger-{time.time()}"
    try:
        words = ["--grid", "n=1..4", "sh", "-c", f"echo $YURT_TASK_INDEX >> {file}"]
        sweep = laptop.run("alpha", *SMALL, *words)["run"]["id"]
        away = laptop("cancel", sweep, "--filter", "n=2", "--filter", "n=3")
        assert away.code in {0, 4}
    finally:
        lab.faults.heal("alpha")
    assert ended(laptop, sweep) == {"completed": 2, "cancelled": 2}
    assert sorted(Ssh(lab)("alpha", f"cat {file}").split()) == ["0", "3"]


def test_retry_makes_one_sweep_of_selected_tasks(laptop: Laptop, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    command = f'[ -e {flag} ] || [ "$YURT_PARAM_N" = 1 ] || exit 4'
    grid = ["--grid", "lr=0.1,0.01", "--grid", "n=1..3"]
    sweep = laptop.run("local", *grid, "sh", "-c", command)["run"]["id"]
    assert ended(laptop, sweep) == {"completed": 2, "failed": 4}
    flag.touch()
    before = laptop("ps", "--json").json["data"]
    for words in (["--filter", "lr=0.3"], ["--filter", "rate=1"], ["--filter", "lr"]):
        assert laptop("retry", sweep, *words).code in {2, 3}
    assert len(laptop("ps", "--json").json["data"]) == len(before)
    (again,) = laptop("retry", sweep, "--filter", "lr=0.1", "--filter", "state=failed", "--json").json["data"]
    assert (again["run"]["tasks"], again["run"]["retry_of"]) == (2, sweep)
    (other,) = laptop("retry", sweep, "--failed", "--filter", "n=2", "--json").json["data"]
    assert laptop("wait", again["run"]["id"], other["run"]["id"]).code == 0
    rows = laptop("show", again["run"]["id"], "--json").json["data"]["rows"]
    assert [row["params"] for row in rows] == [{"lr": 0.1, "n": 2}, {"lr": 0.1, "n": 3}]
    rows = laptop("show", other["run"]["id"], "--json").json["data"]["rows"]
    assert [row["params"] for row in rows] == [{"lr": 0.01, "n": 2}], "the other task was already retried"


def test_waiting_for_some_tasks(laptop: Laptop, tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    command = f'[ "$YURT_PARAM_N" = 1 ] || until [ -e {stop} ]; do sleep 0.1; done'
    sweep = laptop.run("local", "--grid", "n=1,2", "sh", "-c", command)["run"]["id"]
    some = laptop("wait", sweep, "--filter", "n=1", "--timeout", "240", "--json")
    assert (some.code, [each["run"]["id"] for each in some.json["data"]]) == (0, [f"{sweep}.0"])
    going = laptop("retry", sweep, "--filter", "n=2")
    assert (going.code, f"{sweep}.1 has not finished" in going.err) == (5, True)
    stop.touch()
    assert laptop("wait", sweep).code == 0
    row = laptop.row(sweep)
    assert row["started"] and row["ended"] >= row["started"], "a sweep lasts from its first start to its last end"


@pytest.mark.parametrize("context", ["local", "alpha", "beta"])
@pytest.mark.slow("beta")
def test_files_of_tasks_are_fetched_in_one_transfer(laptop: Laptop, context: str, tmp_path: Path) -> None:
    write = 'cd $YURT_OUTPUTS && echo $YURT_PARAM_N > "a b" && mkdir d'
    command = f"{write} && {{ [ $YURT_PARAM_N = 4 ] || echo x > d/x.json; }}"
    sweep = laptop.run(context, *SMALL, "--grid", "n=1..4", "sh", "-c", command)["run"]["id"]
    assert laptop("wait", sweep, "--timeout", "240").code == 0
    some = laptop("fetch", sweep, "--filter", "n=2", "--filter", "n=3", "--to", str(tmp_path / "some"), "--json")
    assert [(each["id"], each["files"], each["complete"]) for each in some.json["data"]] == [
        (f"{sweep}.1", 2, True),
        (f"{sweep}.2", 2, True),
    ], some
    assert (tmp_path / "some" / f"{sweep}.2" / "a b").read_text() == "3\n"
    said = laptop("-v", "fetch", sweep)
    assert said.code == 0 and "fetching 4 runs" in said.err, said
    home = laptop.project / "results"
    assert [(home / f"{sweep}.{number}" / "a b").read_text() for number in range(4)] == ["1\n", "2\n", "3\n", "4\n"]
    again = laptop("fetch", sweep, "--json").json["data"]
    assert [(each["files"], each["complete"]) for each in again] == [(0, True)] * 4
    json_only = laptop("fetch", sweep, "--only", "*.json", "--to", str(tmp_path / "only"), "--json")
    assert json_only.code == 0 and "matches '*.json'" in json_only.json["warnings"][0]
    assert [each["files"] for each in json_only.json["data"]] == [1, 1, 1]
    assert not (tmp_path / "only" / f"{sweep}.3").exists()
    assert laptop("fetch", sweep, "--all").code == 0
    assert (home / f"{sweep}.1.all" / "exit.json").exists() and not (home / f"{sweep}.1.all" / "pycache").exists()
    with Store(str(laptop.home / "data" / "yurt.db")) as index:
        assert all(index.copies(f"{sweep}.{number}") for number in range(4))


def test_invalid_selections_are_reported(laptop: Laptop) -> None:
    run = laptop.run("local", "true")["run"]["id"]
    sweep = laptop.run("local", "--grid", "n=1,2", "true")["run"]["id"]
    assert laptop("wait", run, sweep).code == 0
    for verb in ("cancel", "retry", "fetch", "logs", "wait"):
        single = laptop.quick(verb, run, "--filter", "n=1")
        assert (single.code, f"{run} is a single run" in single.err) == (2, True), single
        task = laptop.quick(verb, f"{sweep}.0", "--filter", "n=1")
        assert (task.code, f"is a task of {sweep}" in task.err) == (2, True), task
        none = laptop.quick(verb, sweep, "--filter", "n=3")
        assert (none.code, f"no task of {sweep} matches n=3" in none.err) == (3, True), none
        wrong = laptop.quick(verb, sweep, "--filter", "m=3")
        assert (wrong.code, "unknown column 'm'" in wrong.err) == (2, True), wrong
    assert laptop.quick("retry", "--failed", "--filter", "n=1").code == 2
    assert laptop.quick("logs", sweep, "--filter", "n=3", "--json").json["error"]["code"] == "not-found"
