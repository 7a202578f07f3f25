"""shell: a terminal or a command inside a run, on its node, in its folder, with its variables."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pexpect
import pytest

from tests.calls import YURT
from tests.laptop import Laptop
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab

ODD = 'it\'s "$HOME"\n* two  lines'


@pytest.fixture(params=["local", "alpha", "beta"])
def run(laptop: Laptop, request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    made: dict[str, str] = laptop.run(request.param, "--var", f"ODD={ODD}", "sleep", "300")["run"]
    laptop.starts(made["id"])
    yield made
    laptop("cancel", made["id"])


def test_a_command(laptop: Laptop, run: dict[str, str]) -> None:
    node = laptop.row(run["id"])["node"]
    done = laptop("shell", run["id"], "sh", "-c", 'printf "%s|" "$ODD" "$1" "$(pwd)" "$(uname -n)"; exit 7', "sh", ODD)
    assert done.code == 7
    assert done.out == f"{ODD}|{ODD}|{run['folder']}/work|{node}|"


@pytest.mark.slow("beta")
def test_the_reader_of_a_command_exits(laptop: Laptop, run: dict[str, str]) -> None:
    """The command ends, too."""
    name = f"yes-{run['id']}"
    line = f"{YURT} shell {run['id']} -- sh -c 'echo $$; exec yes {name}' | head -n 1"
    environment = {**os.environ, **laptop.environment}
    pid = subprocess.run(["bash", "-c", line], cwd=laptop.project, env=environment, capture_output=True, check=True)
    alive = ["shell", run["id"], "--", "sh", "-c", f"kill -0 {int(pid.stdout)}"]
    eventually(lambda: laptop(*alive).code != 0)


def test_a_terminal(laptop: Laptop, run: dict[str, str]) -> None:
    spawned = pexpect.spawn(
        YURT,
        ["shell", run["id"]],
        cwd=str(laptop.project),
        env={**os.environ, **laptop.environment},
        encoding="utf-8",
        timeout=60,
        dimensions=(24, 200),
    )
    spawned.sendline("stty size; echo run=$YURT_RUN_ID; exit 5")
    spawned.expect("24 200")
    spawned.expect(f"run={run['id']}")
    spawned.expect(pexpect.EOF)
    spawned.close()
    assert spawned.exitstatus == 5


def test_a_run_that_is_not_running(laptop: Laptop) -> None:
    ended = laptop.run("local", "true")["run"]["id"]
    assert laptop.ended(ended)["state"] == "completed"
    done = laptop("shell", ended, "true")
    assert (done.code, f"run {ended} is not running: it is completed" in done.err) == (5, True)
    done = laptop("shell", ended)
    assert (done.code, "standard input is not a terminal" in done.err) == (2, True)


def test_a_task_of_a_sweep(laptop: Laptop) -> None:
    sweep = laptop.run("alpha", "--cpus", "1", "--grid", "n=1,2", "sh", "-c", "sleep 300")["run"]["id"]
    laptop.starts(sweep)
    done = laptop("shell", f"{sweep}.1", "sh", "-c", "echo $YURT_RUN_ID; exit 7")
    assert (done.code, done.out) == (7, f"{sweep}.1\n")
    done = laptop("shell", sweep, "true")
    assert (done.code, f"{sweep} is a sweep; this command needs a single task" in done.err) == (2, True)
    assert laptop("run", "-f", "--grid", "n=1,2", "true").code == 0
    laptop("cancel", sweep)
