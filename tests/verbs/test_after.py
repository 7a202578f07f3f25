"""Runs that follow others: in one queue, from the outbox, between contexts; and those whose turn never comes."""

from __future__ import annotations

import pytest

from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from yurt.lab import Lab
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab


def begin(laptop: Laptop, context: str, *words: str) -> str:
    run: str = laptop.run(context, *words)["run"]["id"]
    return run


@pytest.mark.parametrize("context", ["local", "alpha", "beta"])
def test_in_one_queue_nobody_needs_to_look(laptop: Laptop, context: str) -> None:
    """All are handed over at once; those behind start when it is their turn, or never, without yurt."""
    first = begin(laptop, context, "--cpus", "1", "sh", "-c", "sleep 3; date +%s.%N")
    second = begin(laptop, context, "--after", first, "sh", "-c", "date +%s.%N")
    fails = begin(laptop, context, "--after", first, "--after", second, "false")
    never = begin(laptop, context, "--after", fails, "echo", "ran")
    anyhow = begin(laptop, context, "--after-any", fails, "echo", "ran")
    rows = {row["id"]: row for row in laptop("ps", "--json").json["data"]}
    assert {rows[run]["state"] for run in (second, fails, never, anyhow)} == {"queued"}
    for run, state in ((first, "completed"), (second, "completed"), (fails, "failed"), (anyhow, "completed")):
        assert laptop.ended(run)["state"] == state
    row = laptop.ended(never)
    assert (row["state"], row["reason"]) == ("cancelled", "a run that it follows did not complete")
    assert laptop("logs", never).out == ""
    ends = [float(laptop("logs", run).out.split()[-1]) for run in (first, second)]
    assert ends[0] < ends[1]


def test_behind_one_that_has_not_gone_out(laptop: Laptop, lab: Lab) -> None:
    laptop("login", "--close", "alpha")
    lab.faults.cut("alpha")
    try:
        first = begin(laptop, "alpha", "sh", "-c", "sleep 2; date +%s.%N")
        second = begin(laptop, "alpha", "--after", first, "sh", "-c", "date +%s.%N")
        alone = begin(laptop, "local", "--after", first, "sh", "-c", "date +%s.%N")
        assert {laptop.row(run)["state"] for run in (first, second, alone)} == {"waiting"}
    finally:
        lab.faults.heal("alpha")
    assert laptop("agent", "once").code == 0
    assert laptop.row(second)["state"] in ("queued", "running", "completed"), "both went out in one go"
    assert {laptop.ended(run)["state"] for run in (first, second, alone)} == {"completed"}
    ends = [float(laptop("logs", run).out.split()[-1]) for run in (first, second, alone)]
    assert ends[0] == min(ends)


def test_behind_one_on_another_context(laptop: Laptop) -> None:
    """yurt itself holds it back, in nobody's way."""
    first = begin(laptop, "beta", "sleep", "3")
    second = begin(laptop, "alpha", "--after", first, "true")
    other = begin(laptop, "alpha", "true")
    row = laptop.row(second)
    assert (row["state"], row["reason"]) == ("waiting", f"it follows run {first}, which has not ended")
    assert laptop.ended(other)["state"] == "completed"
    assert laptop.ended(second)["state"] == "completed"
    third = begin(laptop, "beta", "sleep", "60")
    fourth = begin(laptop, "alpha", "--after", third, "true")
    laptop("cancel", third)
    row = laptop.ended(fourth)
    assert row["state"] == "cancelled"
    assert row["reason"] == f"run {third}, which it follows, did not complete (cancelled)"


def test_the_queue_forgot_the_one_before(laptop: Laptop, lab: Lab) -> None:
    """yurt does not know yet that it has ended, and beta no longer knows that it was there."""
    first = begin(laptop, "beta", "true")
    eventually(lambda: f"yurt-{first}" not in Ssh(lab)("beta", "squeue -h -t all -o %j"), seconds=60, pause=1)
    second = begin(laptop, "beta", "--after", first, "echo", "ran")
    assert laptop.ended(second)["state"] == "completed"


def test_what_cannot_be_followed(laptop: Laptop) -> None:
    failed = begin(laptop, "local", "false")
    laptop.ended(failed)
    before = len(laptop("ps", "--json").json["data"])
    done = laptop("run", "--after", failed, "true")
    assert done.code == 5
    assert f"run {failed}, which it follows, did not complete (failed)" in done.err
    assert laptop("run", "--after", "nosuch", "true").code == 3
    assert len(laptop("ps", "--json").json["data"]) == before, "nothing is kept of it"
    assert laptop.ended(begin(laptop, "local", "--after-any", failed, "true"))["state"] == "completed"
