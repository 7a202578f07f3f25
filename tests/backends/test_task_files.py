"""After its end, a task leaves few files: its end is in exit.json, which also keeps its gate closed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from tests.user import User
from yurt.backends.job import script
from yurt.lab import Lab
from yurt.testing.waiting import eventually

NOTES = 'echo "$YURT_RUN_ID" >> "$LEDGER"; until [ -e "$GO" ]; do sleep 0.1; done; echo out'


class Sweep:
    """A sweep of one task on this machine, which runs until it may end."""

    def __init__(self, user: User) -> None:
        self.user, self.ledger, self.go = user, user.home / "ledger", user.home / "go-on"
        self.variables = {"LEDGER": str(self.ledger), "GO": str(self.go)}
        done = user("--json", "run", "--grid", "n=1", "sh", "-c", NOTES, **self.variables)
        self.id, self.folder = done.json["data"]["run"]["id"], Path(done.json["data"]["run"]["folder"])
        self.task = self.folder / "tasks" / "0"
        eventually(self.ledger.exists)

    def end(self) -> None:
        self.go.touch()
        assert self.user("wait", self.id).code == 0
        eventually(lambda: not (self.task / "winner").exists())

    def names(self) -> set[str]:
        return {each.name for each in self.task.iterdir()}

    def submission(self, change: tuple[str, str] = ("", "")) -> subprocess.Popen[bytes]:
        """Start another job of the task, with a change of its job.sh."""
        text = (self.folder / "job.sh").read_text()
        assert change[0] in text
        (self.user.home / "other.sh").write_text(text.replace(*change, 1) if change[0] else text)
        argv = ["sh", str(self.user.home / "other.sh"), "feedbeef", "", "0"]
        return subprocess.Popen(argv, env={"PATH": "/usr/bin:/bin", **self.variables})


@pytest.fixture
def sweep(user: User) -> Sweep:
    return Sweep(user)


def test_what_is_left(sweep: Sweep) -> None:
    assert {"winner", "gen.1", "set", "params.json", "work"} <= sweep.names()
    sweep.end()
    assert sweep.names() == {"exit.json", "out.log"}
    shown = sweep.user("show", f"{sweep.id}.0", "--json").json["data"]["status"]
    assert (shown["state"], shown["exit_code"], shown["restarts"]) == ("completed", 0, 0)
    assert sweep.user("logs", f"{sweep.id}.0").out == "out\n"
    assert sweep.names() == {"exit.json", "out.log"}, "neither show nor logs add files"


def test_another_job_after_the_end(sweep: Sweep) -> None:
    sweep.end()
    assert sweep.submission().wait(60) == 0
    assert sweep.ledger.read_text() == f"{sweep.id}.0\n" and sweep.names() == {"exit.json", "out.log"}


def test_another_job_that_looked_before_the_end(sweep: Sweep) -> None:
    """It sees no exit.json, then the task ends and removes its gate, then the job passes the empty gate."""
    held, released = sweep.user.home / "held", sweep.user.home / "released"
    stop = f": > '{held}'; until [ -e '{released}' ]; do sleep 0.1; done\n"
    gate = "  owner=$(write_once winner"
    other = sweep.submission((gate, f"  {stop}{gate}"))
    eventually(held.exists)
    sweep.end()
    released.touch()
    assert other.wait(60) == 0
    assert sweep.ledger.read_text() == f"{sweep.id}.0\n", "it ran twice"
    assert sweep.names() == {"exit.json", "out.log"}


def test_cancelled_during_the_end(sweep: Sweep) -> None:
    """As above, with a cancellation instead of a job."""
    held, released = sweep.user.home / "held", sweep.user.home / "released"
    stop = f": > '{held}'; until [ -e '{released}' ]; do sleep 0.1; done\n"
    gate = "    winner=$(patience=2 write_once"
    text = script.closer()
    assert gate in text
    text = text.replace(gate, f"    {stop}{gate}") + f"close_gate '{sweep.task}'; echo $winner"
    closing = subprocess.Popen(["sh", "-c", text], stdout=subprocess.PIPE)
    eventually(held.exists)
    sweep.end()
    released.touch()
    assert closing.communicate(timeout=60)[0] == b"ended\n"
    assert sweep.names() == {"exit.json", "out.log"}


def test_a_task_that_was_killed_while_it_removed_files(sweep: Sweep) -> None:
    """Some of its files are left; that changes nothing."""
    sweep.end()
    (sweep.task / "gen.1").write_text("x\n")
    (sweep.task / "winner").write_text("deadbeef.1\n")
    assert sweep.submission().wait(60) == 0
    assert sweep.ledger.read_text() == f"{sweep.id}.0\n"
    assert sweep.user("show", sweep.id, "--json").json["data"]["rows"][0]["state"] == "completed"


@pytest.mark.lab
@pytest.mark.parametrize("context", ["alpha", "beta"])
@pytest.mark.slow("beta")
def test_inodes_of_a_sweep(laptop: Laptop, second_laptop: Laptop, lab: Lab, context: str) -> None:
    run = laptop.run(context, "--grid", "n=1..6", "sh", "-c", 'echo out; echo err >&2; [ "$YURT_PARAM_N" != 2 ]')["run"]
    assert laptop.ended(run["id"])["state"] == "failed"
    assert laptop("show", f"{run['id']}.1", "--json").code == 0
    listed = Ssh(lab)(context, f"find {run['folder']}/tasks -mindepth 1 | wc -l").split()[-1]
    assert int(listed) == 6 * 4, "each has its folder, exit.json and two logs"
    assert second_laptop("import", context).code == 0
    for task in range(6):
        shown = [each("show", f"{run['id']}.{task}", "--json").json["data"] for each in (laptop, second_laptop)]
        assert shown[0]["status"] == shown[1]["status"], "all machines show the same"
