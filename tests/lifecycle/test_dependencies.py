"""Runs with predecessors: in one queue, in the outbox, on another context; and runs whose predecessor fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from yurt.lab import Lab
from yurt.testing.runs import PATIENT

pytestmark = pytest.mark.lab


def begin(laptop: Laptop, context: str, *words: str) -> str:
    run: str = laptop.run(context, *words)["run"]["id"]
    return run


def finish(lab: Lab, run: dict[str, Any]) -> None:
    """Let a run of PATIENT finish."""
    if run["context"] == "local":
        Path(run["folder"], "go").touch()
    else:
        Ssh(lab)(run["context"], f"touch {run['folder']}/go")


def ends(laptop: Laptop, *runs: str) -> list[tuple[str, str]]:
    """Wait for runs and return the state and the reason of each."""
    done = laptop("wait", *runs, "--timeout", "240", "--json")
    assert done.code in (0, 1), done
    return [(each["status"]["state"], each["status"]["reason"]) for each in done.json["data"]]


def last_word(laptop: Laptop, run: str) -> float:
    return float(laptop("logs", run).out.split()[-1])


@pytest.mark.parametrize("context", ["local", "alpha", "beta"])
@pytest.mark.slow("beta")
def test_in_one_queue_slurm_keeps_the_order(laptop: Laptop, lab: Lab, context: str) -> None:
    """All are submitted immediately; Slurm and job.sh start or skip the dependent ones without yurt."""
    patient = laptop.run(context, "--cpus", "1", "sh", "-c", f"{PATIENT}; date +%s.%N")["run"]
    first = patient["id"]
    second = begin(laptop, context, "--after", first, "sh", "-c", "date +%s.%N")
    fails = begin(laptop, context, "--after", first, "--after", second, "false")
    never = begin(laptop, context, "--after", fails, "echo", "ran")
    anyhow = begin(laptop, context, "--after-any", fails, "echo", "ran")
    rows = {row["id"]: row for row in laptop("ps", "--json").json["data"]}
    assert {rows[run]["state"] for run in (second, fails, never, anyhow)} == {"queued"}
    finish(lab, patient)
    *states, last = ends(laptop, first, second, fails, anyhow, never)
    assert [state for state, _reason in states] == ["completed", "completed", "failed", "completed"]
    assert last == ("cancelled", "a run that it depends on did not complete")
    assert laptop("logs", never).out == ""
    assert last_word(laptop, first) < last_word(laptop, second)


@pytest.mark.slow
def test_behind_a_run_that_is_not_submitted(laptop: Laptop, lab: Lab) -> None:
    lab.faults.cut("alpha")
    try:
        made = [laptop.run("alpha", "date", "+%s.%N")]
        first = made[0]["run"]["id"]
        made += [laptop.run(context, "--after", first, "date", "+%s.%N") for context in ("alpha", "local")]
        assert [each["status"]["state"] for each in made] == ["waiting"] * 3
    finally:
        lab.faults.heal("alpha")
    _first, second, alone = (each["run"]["id"] for each in made)
    done = laptop("agent", "once", "--json")
    assert done.code == 0 and done.json["data"]["submitted"][:2] == [first, second], (
        "both were submitted in one request"
    )
    assert {state for state, _reason in ends(laptop, first, second, alone)} == {"completed"}
    times = [last_word(laptop, run) for run in (first, second, alone)]
    assert times[0] == min(times)


def test_behind_a_run_on_another_context(laptop: Laptop, lab: Lab) -> None:
    """yurt keeps it in the outbox, without blocking others; `wait` submits it when its predecessor has finished."""
    first = laptop.run("beta", "sh", "-c", PATIENT)["run"]
    second = laptop.run("alpha", "--after", first["id"], "true")
    assert second["status"]["state"] == "waiting"
    assert second["status"]["reason"] == f"run {first['id']}, which it depends on, has not finished"
    assert ends(laptop, begin(laptop, "alpha", "true")) == [("completed", "")]
    finish(lab, first)
    assert ends(laptop, second["run"]["id"]) == [("completed", "")]


def test_behind_a_cancelled_run_on_another_context(laptop: Laptop) -> None:
    first = begin(laptop, "beta", "sleep", "60")
    second = begin(laptop, "alpha", "--after", first, "true")
    laptop("cancel", first)
    why = f"run {first}, which it depends on, did not complete (cancelled)"
    assert ends(laptop, second) == [("cancelled", why)]


@pytest.mark.slow
def test_the_queue_no_longer_lists_the_predecessor(laptop: Laptop, lab: Lab) -> None:
    """The index does not yet record that it finished, and beta no longer lists its job."""
    lab.configure("beta", {"MinJobAge": "2"})
    try:
        first = begin(laptop, "beta", "true")
        known = f"squeue -h -t all -o %j | grep -qxF yurt-{first}"
        Ssh(lab)("beta", f"timeout 120 sh -c 'while {known}; do sleep 0.5; done'", timeout=150)
        second = begin(laptop, "beta", "--after", first, "echo", "ran")
        assert ends(laptop, second) == [("completed", "")]
    finally:
        lab.configure("beta", {"MinJobAge": ""})


def test_invalid_predecessors(laptop: Laptop) -> None:
    failed = begin(laptop, "local", "false")
    assert ends(laptop, failed) == [("failed", "exit code 1")]
    before = laptop.contents()
    done = laptop("run", "--after", failed, "true")
    assert done.code == 5
    assert f"the run cannot start: run {failed}, which it depends on, did not complete (failed)" in done.err
    assert laptop("run", "--after", "nosuch", "true").code == 3
    assert laptop.contents() == before, "a rejected run is not kept"
    assert ends(laptop, begin(laptop, "local", "--after-any", failed, "true")) == [("completed", "")]
