"""The program of a service: phases, exit codes and signals; nothing of it stays when it has ended."""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
from pathlib import Path

import pytest

from tests.node.conftest import pythons
from tests.node.service.conftest import ECHO, Start
from yurt.testing.waiting import eventually

NONE_ALLOWED = ("unshare", "-r", "sh", "-c", 'echo 0 > /proc/sys/user/max_net_namespaces && exec "$@"', "sh")
"""Runs a command where the kernel lets nobody create a network."""

FORKS = f"""
import os, sys
if os.fork():
    if os.fork():
        os.wait()  # of the server
    else:
        os.setsid()  # as kernels of Jupyter
        import signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
else:
    os.execv(sys.executable, [sys.executable, "-c", {ECHO!r}, sys.argv[1]])
"""

needs_unshare = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux, for its namespaces")


def test_the_phases(start: Start) -> None:
    made = start.echo("{socket}")
    status = made.ready()
    folder = Path(status["socket"]).parent
    assert status["way"] == "socket" and status["token"] == "" and "port" not in status
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and (made.run / "service.json").stat().st_mode & 0o777 == 0o600
    with made.connect() as one:
        one.sendall(b"hello")
        assert one.recv(100) == b"hello"
    assert made.end() == 128 + signal.SIGTERM
    assert made.status["phase"] == "ended" and made.status["listened"] is True
    assert not folder.exists() and made.processes() == [] and made.words == ""


@pytest.mark.parametrize("where", ["{port}", "{socket}"])
def test_the_exit_code_of_the_program(start: Start, where: str) -> None:
    made = start(words=["sh", "-c", f": {where}; exit 7"])
    assert made.process.wait(60) == 7
    assert (made.status["phase"], made.status["code"], made.status["listened"]) == ("ended", 7, False)
    assert made.words == "yurt: the program ended before it listened\n"
    killed = start(words=["sh", "-c", f": {where}; kill -KILL $$"])
    assert killed.process.wait(60) == 137 and killed.status["code"] == 137


@pytest.mark.parametrize("where", ["{port}", "{socket}"])
def test_a_program_that_does_not_exist(start: Start, where: str) -> None:
    made = start(words=["no-such-program", where])
    assert made.process.wait(60) == 78
    note = "the program no-such-program does not exist on this node, or cannot be executed"
    assert made.status["phase"] == "failed" and made.status["note"] == note
    assert made.words == f"yurt: {note}\n"


@pytest.mark.parametrize("where", ["{port}", "{socket}"])
def test_a_program_that_never_listens_can_be_ended(start: Start, where: str) -> None:
    made = start(words=["sh", "-c", f": {where}; touch began; exec sleep 600"])
    eventually((start.top / "began").exists)
    assert made.status["phase"] == "starting"
    assert made.end() == 143 and made.processes() == [] and made.words == ""


@pytest.mark.parametrize("where", ["127.0.0.1@{port}", "{socket}"])
def test_processes_that_ignore_term_or_leave_the_group_end(start: Start, where: str) -> None:
    made = start(words=[sys.executable, "-c", FORKS, where])
    made.ready()
    assert len(made.processes()) >= 4
    assert made.end() == 143 and made.processes() == []


@pytest.mark.parametrize("where", ["127.0.0.1@{port}", "{socket}"])
def test_kill_of_the_runner_ends_the_program(start: Start, where: str) -> None:
    made = start.echo(where)
    folder = Path(made.ready()["socket"]).parent
    made.process.kill()
    made.process.wait()
    eventually(lambda: made.processes() == [])
    start.echo("{socket}").ready()
    assert not folder.exists(), "the next service on the node removes it"


def test_a_signal_while_it_starts(start: Start, tmp_path: Path) -> None:
    """The search for a package may take a minute on a slow disk."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").write_text("#!/bin/sh\ntouch began\nuntil [ -e go ]; do sleep 0.1; done\n")
    (tmp_path / "bin" / "python").chmod(0o755)
    made = start("jupyter", variables={"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"})
    eventually((start.top / "began").exists)
    made.process.send_signal(signal.SIGTERM)
    (start.top / "go").touch()
    assert made.process.wait(60) == 143 and made.processes() == []


def test_the_umask_of_the_user_holds(start: Start) -> None:
    made = start(
        words=["sh", "-c", 'umask > mask; touch file; exec "$@"', "sh", sys.executable, "-c", ECHO, "{socket}"],
        before=("sh", "-c", 'umask 0027; exec "$@"', "sh"),
    )
    made.ready()
    assert (start.top / "mask").read_text().strip() == "0027"
    assert (start.top / "file").stat().st_mode & 0o777 == 0o640


def test_a_second_start_replaces_what_the_first_one_said(start: Start) -> None:
    """A requeued job: the socket of the node before must not be taken for that of the new one."""
    first = start(words=["sh", "-c", ": {socket}; exit 1"])
    first.process.wait(60)
    (first.run / "service.json").write_text(json.dumps({**first.status, "socket": "/old", "phase": "ready"}))
    assert first.status["restarts"] == 0
    words = ["sh", "-c", ": {socket}; touch began; exec sleep 600"]
    second = start(words=words, variables={"YURT_RESTARTS": "1"})
    eventually((start.top / "began").exists)
    assert second.status["phase"] == "starting" and "socket" not in second.status
    assert second.status["restarts"] == 1


def test_a_run_folder_that_cannot_be_written(start: Start) -> None:
    made = start(words=["sh", "-c", ": {socket}; exit 3"], variables={"YURT_RUN_DIR": str(start.top / "missing")})
    assert made.process.wait(60) == 3
    assert "service.json cannot be written: No such file or directory" in made.words


@needs_unshare
def test_where_no_network_is_allowed_it_is_refused(start: Start) -> None:
    made = start.echo("127.0.0.1@{port}", before=NONE_ALLOWED)
    assert made.process.wait(60) == 78
    (line,) = made.words.splitlines()
    assert "does not let programs have a network of their own, so that every user of the node could reach" in line
    assert line.endswith("let the program listen on {socket}, or allow it with --open-port")
    assert made.status["phase"] == "failed" and line == f"yurt: {made.status['note']}"


@needs_unshare
def test_where_no_network_is_allowed_an_open_port_is_said(start: Start) -> None:
    made = start.echo("127.0.0.1@{port}", before=NONE_ALLOWED, open=True)
    status = made.ready()
    assert status["way"] == "port" and "socket" not in status
    assert f"can reach port {status['port']}" in made.words
    assert made.end() == 143 and made.processes() == []


@needs_unshare
def test_an_open_port_is_not_used_where_a_network_is_allowed(start: Start) -> None:
    assert start.echo("127.0.0.1@{port}", open=True).ready()["way"] == "network"


@pytest.mark.parametrize("python", pythons())
def test_on_each_python_there_is(start: Start, python: str) -> None:
    for where in ("127.0.0.1@{port}", "{socket}"):
        made = start.echo(where, python=python)
        made.ready()
        with made.connect() as one:
            one.sendall(b"hello")
            assert one.recv(100) == b"hello"
        assert made.end() == 143 and made.words == "" and made.processes() == []
