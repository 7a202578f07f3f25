"""serve: services on this machine, from their start to their end, and what goes wrong."""

from __future__ import annotations

import os
import random
import shlex
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pexpect
import pytest

from tests.calls import YURT
from tests.services.serving import APP, COMMAND, client, left, processes, services
from tests.user import User, said
from yurt.testing.waiting import eventually


@pytest.fixture(autouse=True)
def services_end(user: User) -> Iterator[None]:
    """A test that fails leaves no services."""
    yield
    user.quick("serve", "stop", "--all")


def stopped(user: User) -> None:
    """End all services, and check that nothing is left of them."""
    assert user.quick("serve", "stop", "--all").code == 0
    eventually(lambda: left(user) == [], seconds=30)
    assert services(user) == []


def test_life(user: User) -> None:
    with client(user, *COMMAND) as first:
        (found,) = services(user)
        run = found["run"]
        assert first.get().split()[1] == run
        expected = {"name": "app", "context": "local", "phase": "ready", "private": "socket", "url": "", "ends": None}
        assert {key: found[key] for key in expected} == expected
        table = user.quick("serve", "list").out.splitlines()
        assert table[0].split()[:4] == ["name", "run", "context", "state"] and table[1].split()[3] == "ready"
        assert f"service 'app' runs on this machine as run {run}\n" in first.err
        with client(user, "open", "--json") as second:
            assert second.url != first.url and second.get() == first.get()
            assert second.end() == 0
            assert "service 'app' stays; return to it with `yurt serve open app`" in second.err
        with client(user, *COMMAND) as third:
            assert third.get() == first.get() and f"service 'app' is running already as run {run}" in third.err
            assert [row["id"] for row in user.quick("ps", "--json").json["data"]] == [run]
            assert user.quick("show", run, "--json").json["data"]["run"]["purpose"] == "service"
            assert "app listens" in user.quick("logs", run).out
            retried = user.quick("retry", run)
            assert retried.code != 0 and "Traceback" not in retried.err
            assert user.quick("fetch", run).code in (0, 5)
            assert user.quick("prune", "--yes").code == 0 and first.get()
            assert user.quick("serve", "stop", "app").code == 0
            for each in (first, third):
                assert each.process.wait(60) == 0 and "service 'app' has ended" in each.err
    eventually(lambda: left(user) == [], seconds=30)
    assert list(user.runtime.glob("page-*")) == []
    assert user.quick("serve", "list").out.startswith("no services")
    assert "no service is running" in said(user.quick("serve", "open"), 3)
    ended = user.quick("serve", "open", run)
    assert "service 'app' has ended (cancelled)" in said(ended, 5)
    again = f"yurt serve --context local --name app -- {shlex.join(COMMAND[1:])}"
    assert f"hint: start it again with `{again}`\n" in ended.err
    assert f"help:  start it again with `{again}`\n" in user.quick("why", run).out


def test_ctrl_c_in_a_terminal(user: User, request: pytest.FixtureRequest) -> None:
    """It asks whether the job stays. Ctrl-C at the question and a terminal that is closed keep it."""
    (user.project / "app.py").write_text(APP)
    ways = [("serve", *COMMAND), ("serve", "open", "app"), ("serve", "open"), ("serve", "open")]
    for words, answer in zip(ways, ["y\r", "\x03", "", "n\r"], strict=True):
        terminal = user.spawn(*words, cwd=user.project)
        request.addfinalizer(partial(terminal.close, force=True))
        terminal.expect(r"http://127\.0\.0\.1:\d+/\?token=\S+\r\nyurt: press Ctrl-C to leave")
        if answer:
            terminal.sendintr()
            terminal.expect(r"keep service 'app' on this machine\? \[Y/n\]: ")
            terminal.send(answer)
            terminal.expect("service 'app' is being stopped" if answer == "n\r" else "service 'app' stays")
            terminal.expect(pexpect.EOF)
        terminal.close(force=False)  # sends SIGHUP
        assert "Loop" not in (terminal.before or "") and "Traceback" not in (terminal.before or "")
        eventually(lambda: not any(f"{YURT} serve" in each for each in processes(user).values()))
        eventually(lambda: len(services(user)) == (answer != "n\r"))  # noqa: B023
    eventually(lambda: left(user) == [], seconds=30)


@pytest.mark.slow("term", "hup")
@pytest.mark.parametrize(
    ("words", "number", "stays"),
    [
        ([], signal.SIGINT, True),
        ([], signal.SIGTERM, True),
        (["--on-exit", "keep"], signal.SIGHUP, True),
        (["--on-exit", "stop"], signal.SIGTERM, False),
    ],
    ids=["int", "term", "hup", "stop"],
)
def test_signals_without_a_terminal(user: User, words: list[str], number: int, stays: bool) -> None:
    with client(user, *words, *COMMAND) as made:
        assert made.answers() and made.end(number) == 0
        assert ("service 'app' stays" if stays else "service 'app' is being stopped") in made.err
        assert "Loop" not in made.err and "Traceback" not in made.err
    eventually(lambda: len(services(user)) == stays)
    stopped(user)


def test_two_commands_at_once_submit_one_job(user: User) -> None:
    with client(user, *COMMAND, opens=False) as first, client(user, *COMMAND, opens=False) as second:
        first.opened()
        second.opened()
        assert first.get() == second.get()
        assert len(user.quick("ps", "--all", "--json").json["data"]) == 1
    stopped(user)


def test_another_project_with_the_same_name(user: User, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    with client(user, *COMMAND) as first:
        user.project, here = other, user.project
        with client(user, *COMMAND) as second:
            assert first.get().split()[1] != second.get().split()[1]
            (mine,) = [each for each in services(user) if each["run"] == second.get().split()[1]]
            with client(user, "open", "app") as third:
                assert third.get() == second.get()
            assert user.quick("serve", "stop", "app").code == 0  # that of this project
            assert second.process.wait(60) == 0
            assert mine["run"] not in [each["run"] for each in services(user)]
        user.project = here
        assert first.answers()
    stopped(user)


BROKEN = [
    (
        ["python3", "missing.py", "{socket}"],
        "service 'missing' ended before it listened: exit code 2",
        "can't open file",
    ),
    (["nosuch", "{socket}"], "service 'nosuch' failed to start: the program nosuch does not exist on this node", ""),
    (["nosuch", "{port}"], "service 'nosuch' failed to start: the program nosuch does not exist on this node", ""),
    (["sh", "-c", ": {socket}"], "ended before it listened: completed", "the program ended before it listened"),
]


@pytest.mark.slow("port")
@pytest.mark.parametrize(("words", "text", "log"), BROKEN, ids=["dies", "socket", "port", "exits"])
def test_a_program_that_does_not_start(user: User, words: list[str], text: str, log: str) -> None:
    done = user("serve", "--", *words)
    assert done.code == 5 and done.out == "" and "Traceback" not in done.err, done
    assert text in done.err and log in done.err
    eventually(lambda: services(user) == [] and left(user) == [], seconds=30)
    (row,) = user.quick("ps", "--all", "--json").json["data"]
    assert row["state"] in ("failed", "completed")


def test_a_package_that_is_not_installed(user: User, tmp_path: Path) -> None:
    bare = tmp_path / "bin"
    bare.mkdir()
    (bare / "python").symlink_to("/usr/bin/python3")
    done = user("serve", "jupyter", "--var", f"PATH={bare}:/usr/bin:/bin")
    assert done.code == 5 and "JupyterLab is not installed for" in done.err, done
    eventually(lambda: left(user) == [], seconds=30)


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["--", "python3", "app.py"], 2, "the command must say where to listen"),
        (["--", "app", "{port}", "{socket}"], 2, "the command contains both {port} and {socket}"),
        (["--local", "99999", *COMMAND], 2, "--local must be a port up to 65535, not 99999"),
        (["--gpus", "1", "jupyter"], 2, "service 'jupyter' has a command of its own"),
        (["open", "other"], 3, "service 'other' not found"),
        (["stop", "other"], 3, "service 'other' not found"),
        (["stop"], 3, "no service is running"),
        (["stop", "--all", "x"], 2, "--all and names cannot be combined"),
        (["tensorboard"], 2, "say what TensorBoard shows"),
        (["mlflow"], 2, "say what MLflow shows"),
    ],
)
def test_refused(user: User, words: list[str], code: int, text: str) -> None:
    assert text in said(user.quick("serve", *words), code)
    assert user.contents() == []


def test_a_port_of_this_machine_that_is_in_use(user: User) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"port {port} of this machine is in use" in said(user.quick("serve", "--local", str(port), *COMMAND), 5)
        assert user.contents() == []
    with client(user, "--local", str(port), *COMMAND) as made:
        assert made.url.startswith(f"http://127.0.0.1:{port}/")
    stopped(user)


def test_a_service_that_is_killed_while_it_is_open(user: User) -> None:
    with client(user, *COMMAND) as made:
        os.kill(int(made.get().split()[0]), signal.SIGKILL)
        assert made.process.wait(60) == 5
        assert "service 'app' ended: killed by signal 9" in made.err and "app listens" in made.err
        assert "Traceback" not in made.err
    eventually(lambda: left(user) == [], seconds=30)


def test_a_run_that_is_not_a_service(user: User) -> None:
    run = user.quick("run", "--json", "--wait", "true").json["data"]["run"]["id"]
    assert f"run {run} is not a service" in said(user.quick("serve", "open", run), 5)


def test_this_machine_sleeps(user: User) -> None:
    with client(user, *COMMAND) as made:
        before = made.get()
        asleep = [made.process.pid, *_children(made.process.pid)]
        try:
            for pid in asleep:
                os.kill(pid, signal.SIGSTOP)
            assert not made.answers(seconds=1)
        finally:
            for pid in reversed(asleep):
                os.kill(pid, signal.SIGCONT)
        assert made.get() == before
    stopped(user)


def _children(pid: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout.split()
    return [int(each) for each in found]


@pytest.mark.parametrize("times", [3, pytest.param(40, marks=pytest.mark.slow)])
def test_kills_of_the_client(user: User, times: int) -> None:
    """At any moment: at most one job exists, the next command reaches it, and no process is left here."""
    random.seed(times)
    for number in range(times):
        with client(user, *COMMAND, opens=False) as made:
            with suppress(subprocess.TimeoutExpired):
                made.process.wait(random.uniform(0.2, 4 if number % 2 else 2))
            made.end(signal.SIGKILL)
        own = {found["run"] for found in services(user)}
        assert len(own) <= 1
        # What runs here belongs to the job, whose processes have its run id in their environment.
        eventually(lambda: [words for pid, words in processes(user).items() if not _of_a_run(pid)] == [])
        if own and number % 4 == 2:
            with client(user, *COMMAND) as made:
                assert made.get().split()[1] in own
            assert user.quick("serve", "stop", "--all").code == 0
            eventually(lambda: processes(user) == {})
    stopped(user)


def _of_a_run(pid: int) -> bool:
    try:
        if b"job.sh" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return True
        if b"YURT_RUN_ID=" in Path(f"/proc/{pid}/environ").read_bytes():
            return True
        parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        return parent > 1 and _of_a_run(parent)  # such as the sampler of a job
    except OSError:
        return True
