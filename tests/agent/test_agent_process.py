"""yurt agent start, status, stop: one process in the background that other verbs do not need."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.laptop import Laptop
from tests.user import User
from yurt.lab import Lab
from yurt.testing.waiting import eventually


@pytest.fixture(autouse=True)
def stopped(request: pytest.FixtureRequest) -> Iterator[None]:
    users: list[User] = [request.getfixturevalue(name) for name in ("user", "laptop") if name in request.fixturenames]
    yield
    for each in users:
        each("agent", "stop")


def state_of(user: User) -> dict[str, Any]:
    found: dict[str, Any] = user("agent", "status", "--json").json["data"]
    return found


def state_file(user: User) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((user.home / "data" / "agent" / "agent.json").read_text())
    return found


def test_it_starts_once_and_stops(user: User) -> None:
    assert user("agent", "status").code == 1
    first = user("agent", "start")
    assert first.code == 0 and first.out.startswith("the agent is running (process ")
    again = user("agent", "start", "--json").json
    assert again["warnings"] == ["the agent was already running"]
    eventually(lambda: state_file(user)["rounds"] == 1)
    done = user("agent", "status")
    assert done.code == 0 and "nothing to do" in done.out
    for file in (user.home / "data" / "agent").iterdir():
        assert file.stat().st_mode & 0o777 == 0o600, file
    pid = state_of(user)["state"]["pid"]
    assert user("agent", "stop").out == "the agent is not running\n"
    eventually(lambda: not Path(f"/proc/{pid}/cmdline").exists() or not Path(f"/proc/{pid}/cmdline").read_bytes())
    assert "the agent was not running" in user("agent", "stop").err
    assert user("agent", "status").code == 1


def test_a_killed_agent_can_be_started_again(user: User) -> None:
    user("agent", "start")
    pid = state_of(user)["state"]["pid"]
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not state_of(user)["running"])
    assert user("agent", "start").code == 0
    assert state_of(user)["state"]["pid"] != pid


def test_an_agent_ends_with_its_folder(user: User) -> None:
    user("agent", "start")
    eventually(lambda: state_file(user)["rounds"] == 1)
    pid = state_file(user)["pid"]
    (user.home / "data" / "agent").rename(user.home / "gone")
    eventually(lambda: "the agent has stopped" in (user.home / "gone" / "log").read_text())
    assert user("agent", "start").code == 0
    assert state_file(user)["pid"] != pid


def test_an_agent_of_another_version_or_machine_is_told(user: User) -> None:
    user("agent", "start")
    eventually(lambda: state_file(user)["rounds"] == 1)
    file = user.home / "data" / "agent" / "agent.json"
    known = state_file(user)
    file.write_text(json.dumps({**known, "version": "0.0.1", "host": "elsewhere"}))
    done = user("agent", "status")
    assert f"(process {known['pid']} on elsewhere, since " in done.out
    assert "the agent runs another version of yurt" in done.err
    refused = user("agent", "stop")
    assert refused.code == 5 and "the agent runs on elsewhere" in refused.err
    file.write_text(json.dumps(known))


def test_a_second_agent_in_the_foreground_is_refused(user: User) -> None:
    user("agent", "start")
    done = user("agent", "start", "--foreground")
    assert done.code == 5 and "the agent is already running" in done.err


@pytest.mark.parametrize("text", ["1s", "soon", "-5s"])
def test_an_interval_that_is_no_interval(user: User, text: str) -> None:
    done = user("agent", "start", f"--interval={text}")
    assert done.code == 2 and "--interval" in done.err
    assert not (user.home / "data" / "agent").exists()


def test_an_agent_that_cannot_start_says_why(user: User) -> None:
    folder = user.home / "data" / "agent"
    folder.mkdir(parents=True)
    (folder / "agent.json").mkdir()
    done = user("agent", "start")
    assert done.code == 5 and "the agent did not start: " in done.err and "hint: see " in done.err


@pytest.mark.lab
def test_it_submits_a_saved_run_and_other_verbs_use_what_it_knows(laptop: Laptop, lab: Lab) -> None:
    laptop("agent", "start", "--interval", "5s")
    lab.faults.cut("alpha")
    try:
        run = laptop.run("alpha", "sh", "-c", "until [ -e go ]; do sleep 0.1; done")["run"]["id"]
    finally:
        lab.faults.heal("alpha")

    def state() -> str:
        (row,) = laptop.quick("ps", "--cached", "--json").json["data"]
        found: str = row["state"]
        return found

    eventually(lambda: state() == "running", seconds=180)
    known = state_file(laptop)
    assert known["operations"]["alpha"] > 0 and known["operations"].keys() == {"alpha"}
    # Right after one of its rounds, `ps` asks nothing: it would wait for alpha, which is cut, and warn.
    rounds = known["rounds"]
    eventually(lambda: state_file(laptop)["rounds"] > rounds)
    lab.faults.cut("alpha")
    try:
        began = time.monotonic()
        listed = laptop.quick("ps", "--json").json
        assert time.monotonic() - began < 10 and listed["warnings"] == []
        assert [row["state"] for row in listed["data"]] == ["running"]
    finally:
        lab.faults.heal("alpha")
        laptop.quick("cancel", run)


def test_the_log_is_rotated(user: User) -> None:
    file: Path = user.home / "data" / "agent" / "log"
    file.parent.mkdir(parents=True, mode=0o700)
    file.write_text("x" * (1 << 20) + "\n")
    user("agent", "start")
    eventually(lambda: (file.parent / "log.1").exists() and file.exists() and file.stat().st_size < 1000)
