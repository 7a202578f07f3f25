"""Runs that are held and released."""

from __future__ import annotations

import re

import pytest

from tests.laptop import Laptop
from tests.user import User


def states(laptop: Laptop, verb: str, *runs: str) -> dict[str, str]:
    done = laptop(verb, *runs, "--json")
    assert done.code == 0, done
    return {each["id"]: each["state"] for each in done.json["data"]}


@pytest.mark.lab
@pytest.mark.parametrize("context", ["alpha", "beta"])
@pytest.mark.slow("beta")
def test_a_run_and_a_sweep(laptop: Laptop, context: str) -> None:
    later = ["--sbatch-option", "begin=now+1hour"]
    run = laptop.run(context, *later, "true")["run"]["id"]
    sweep = laptop.run(context, "--grid", "n=1..3", *later, "true")["run"]["id"]
    assert states(laptop, "hold", run, sweep) == {run: "held", sweep: "held"}
    assert laptop.row(run)["reason"] == "held; release it with `yurt release`"
    assert laptop("hold", run).out == f"{run} held\n", "again"
    row = laptop.row(sweep)
    assert (row["state"], row["reason"]) == ("held", "held; release it with `yurt release`")
    assert "3 held of 3: held; release it with `yurt release`" in laptop("ps").out
    shown = laptop("show", sweep)
    assert re.search(r"^state +held; release it with `yurt release`$", shown.out, re.MULTILINE), shown
    assert laptop("show", f"{sweep}.1", "--json").json["data"]["status"]["state"] == "held"
    assert states(laptop, "release", run, sweep) == {run: "queued", sweep: "queued"}
    row = laptop.row(sweep)
    assert (row["state"], row["reason"], row["task_states"]) == ("queued", "", {"queued": 3})
    assert states(laptop, "hold", sweep) == {sweep: "held"}
    assert laptop("cancel", run, sweep).code == 0
    row = laptop.ended(sweep)
    assert (row["state"], "held" in row["reason"], row["task_states"]) == ("cancelled", False, {"cancelled": 3})
    held = laptop.run(context, "--hold", "true")["run"]["id"]
    assert laptop.row(held)["state"] == "held"
    assert laptop("release", held).code == 0 and laptop.ended(held)["state"] == "completed"
    done = laptop("hold", held)
    assert done.code == 2 and f"run {held} is not in the queue: it is completed" in done.err
    task = laptop("hold", f"{sweep}.1")
    assert task.code == 2 and "only a whole sweep can be held" in task.err


def test_on_this_machine(user: User) -> None:
    assert user("run", "--wait", "true").code == 0
    done = user("hold", "-")
    assert done.code == 2 and "is on this machine, which has no queue" in done.err
