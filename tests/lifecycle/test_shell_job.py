"""shell without a run: a terminal or a command in a job of its own, and no job is left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from tests.calls import YURT, Called, note
from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from tests.user import said
from yurt.lab import Lab
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab


EVERYWHERE = pytest.mark.parametrize("context", ["local", "alpha", "beta"])


class Tmux:
    """A terminal with a shell in the project of a laptop."""

    def __init__(self, laptop: Laptop) -> None:
        self._tmux = ["tmux", "-f", "/dev/null", "-S", str(laptop.runtime / "tmux")]
        environment = {**os.environ, **laptop.environment, "PS1": "$ ", "LC_ALL": "C.UTF-8"}
        size = ["-x", "120", "-y", "30"]
        command = [*self._tmux, "new-session", "-d", *size, "bash --norc --noprofile"]
        subprocess.run(command, cwd=laptop.project, env=environment, check=True)

    def __call__(self, *words: str) -> str:
        return subprocess.run([*self._tmux, *words], capture_output=True, text=True, check=True).stdout

    def type(self, *keys: str) -> None:
        self("send-keys", *keys)

    def line(self, text: str) -> None:
        self("send-keys", "-l", text)
        self("send-keys", "Enter")

    def shows(self, pattern: str) -> None:
        """Wait until the screen matches a pattern, with colours as escape sequences."""
        screen = ""

        def found() -> bool:
            nonlocal screen
            screen = self("capture-pane", "-p", "-e")
            return re.search(pattern, screen, re.MULTILINE) is not None

        try:
            eventually(found)
        except AssertionError:
            raise AssertionError(f"{pattern!r} is not on the screen:\n{screen}") from None


@pytest.fixture
def tmux(laptop: Laptop) -> Iterator[Tmux]:
    made = Tmux(laptop)
    yield made
    made("kill-server")


def newest(laptop: Laptop) -> dict[str, str]:
    """Return the row of the newest run; empty if there is none."""
    rows = laptop.quick("ps", "--json").json["data"]
    return max(rows, key=lambda row: row["created"]) if rows else {}


@EVERYWHERE
def test_a_terminal(laptop: Laptop, tmux: Tmux, context: str) -> None:
    tmux.line(f"{YURT} shell --context {context} --time 5m; echo code=$?")
    tmux.shows(rf"runs on \S+ of {context}")
    tmux.line("PS1='far$ '; export COLUMNS=; echo run=$YURT_RUN_ID job=${SLURM_JOB_ID-none} dir=${PWD##*/}")
    run = newest(laptop)["id"]
    tmux.shows(rf"^run={run} job={'none' if context == 'local' else '[0-9]+'} dir=work$")
    tmux.line("stty size; printf '\\033[31mred\\033[0m\\n'; cat train.py")
    tmux.shows("^30 120$")
    tmux.shows("^\x1b\\[31mred")
    tmux("resize-window", "-x", "100", "-y", "25")
    tmux.line("until [ \"$(stty size)\" = '25 100' ]; do sleep 0.1; done; echo resi'zed'")
    tmux.shows("^resized$")
    tmux.line("clear; sh -c 'echo begun; exec sleep 1000'")
    tmux.shows("^begun$")
    tmux.type("C-z")
    tmux.shows("Stopped +sh -c")
    tmux.line("clear; fg")
    tmux.shows("^sh -c 'echo begun; exec sleep 1000'$")
    tmux.type("C-c")
    tmux.shows(r"^far\$ ?$")
    tmux.line("echo 'far code='$?")
    tmux.shows("^far code=130$")
    tmux.line("echo 5 > $YURT_OUTPUTS/five; exit 3")
    tmux.shows("^code=3$")
    assert laptop.ended(run)["state"] == "completed"
    assert laptop("fetch", run).code == 0 and (laptop.project / "results" / run / "five").read_text() == "5\n"


@EVERYWHERE
def test_a_command(laptop: Laptop, context: str) -> None:
    content = os.urandom(300_000)
    words = ["shell", "--context", context, "--", "sh", "-c", 'cat; echo "$0" >&2; exit 7', "a  b"]
    done = subprocess.run(
        [YURT, *words],
        input=content,
        capture_output=True,
        check=False,
        cwd=laptop.project,
        env={**os.environ, **laptop.environment},
    )
    assert (done.returncode, done.stdout == content) == (7, True)
    assert done.stderr.decode().splitlines()[-1] == "a  b" and "srun" not in done.stderr.decode()
    row = newest(laptop)
    ended = laptop.ended(row["id"])
    assert (ended["state"], ended["exit_code"], ended["purpose"]) == ("failed", 7, "shell")
    assert "is a shell, which cannot be retried" in said(laptop("retry", row["id"]), 2)


@EVERYWHERE
def test_the_reader_of_a_command_exits(laptop: Laptop, context: str) -> None:
    line = f"{YURT} shell --context {context} -- yes | head -n 1; exit ${{PIPESTATUS[0]}}"
    environment = {**os.environ, **laptop.environment}
    done = subprocess.run(["bash", "-c", line], cwd=laptop.project, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (141, b"y\n")
    assert laptop.ended(newest(laptop)["id"])["state"] == "cancelled"


def test_the_standard_streams_are_closed(laptop: Laptop) -> None:
    line = f"{YURT} shell --context local -- sh -c 'cat; echo; exit 4' <&- >&- 2>&-"
    environment = {**os.environ, **laptop.environment}
    assert subprocess.run(["bash", "-c", line], cwd=laptop.project, env=environment, check=False).returncode == 4


def test_all_nodes(laptop: Laptop) -> None:
    """The lines of seeds 002 and 004, as far as the lab has such partitions and accounts."""
    options = ["--partition", "main", "--nodes=2", "--gpus-per-node=1", "--time=01:00:00"]
    done = laptop("shell", "--context", "alpha", *options, "--", "srun", "sh", "-c", "echo $(hostname) $SLURM_PROCID")
    assert (done.code, sorted(done.out.splitlines())) == (0, ["n1 0", "n2 1"])
    options = ["--time=1:0:0", "--ntasks=1", "--cpus-per-task=2", "--mem-per-cpu=256M"]
    done = laptop("shell", "--context", "alpha", *options, "--", "printenv", "SLURM_CPUS_PER_TASK", "SLURM_MEM_PER_CPU")
    assert (done.code, done.out) == (0, "2\n256\n")


PROGRAM = """\
import os, signal, sys, threading
from yurt.cli import main
from yurt.transport.base import Host
from yurt.lifecycle import shell

point, number, *words = sys.argv[1:]

def strike():
    os.kill(os.getpid(), int(number))

def before(function):
    def struck(*arguments, **more):
        strike()
        return function(*arguments, **more)
    return struck

def during(function):
    def struck(self, parcel, stdin, *arguments, **more):
        if b"launch" in parcel.stdin and b"make_folder" in parcel.stdin:
            threading.Timer(0.03, strike).start()
        return function(self, parcel, stdin, *arguments, **more)
    return struck

if point == "submission":
    Host._communicate = during(Host._communicate)
else:
    setattr(shell, point, before(getattr(shell, point)))
sys.exit(main.run(words))
"""
"""Calls yurt, and signals it at some point."""


def struck(laptop: Laptop, point: str, number: int, *words: str) -> Called:
    argv = [sys.executable, "-c", PROGRAM, point, str(number), *words]
    environment = {**os.environ, **laptop.environment}
    done = subprocess.run(
        argv, cwd=laptop.project, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    return note(words, Called(done.returncode, done.stdout, done.stderr), laptop.environment)


@pytest.mark.parametrize(
    ("context", "point", "number"),
    [
        ("alpha", "enqueue", signal.SIGINT),
        ("alpha", "submission", signal.SIGINT),
        ("beta", "until_running", signal.SIGHUP),
        ("alpha", "_run", signal.SIGTERM),
        ("local", "_run", signal.SIGINT),
    ],
)
def test_interrupted_before_it_is_open(laptop: Laptop, lab: Lab, context: str, point: str, number: int) -> None:
    done = struck(laptop, point, number, "shell", "--context", context, "--", "sleep", "1000")
    assert done.code == 130, done
    if point == "enqueue":
        assert done.err == "yurt: interrupted; nothing was submitted\n" and newest(laptop) == {}
        return
    run = newest(laptop)["id"]
    assert done.err.splitlines()[-1] == f"yurt: interrupted; run {run} is cancelled"
    assert laptop.ended(run)["state"] == "cancelled"
    if context != "local":
        eventually(lambda: run not in Ssh(lab)(context, "squeue -h -t PD,R,CG,S -o %j"))


@pytest.mark.slow
@pytest.mark.parametrize("context", ["local", "alpha", "beta"])
def test_interrupted_at_any_moment(laptop: Laptop, lab: Lab, context: str) -> None:
    environment = {**os.environ, **laptop.environment}
    words = [YURT, "shell", "--context", context, "--", "sleep", "1000"]
    for moment in range(20):
        with subprocess.Popen(words, cwd=laptop.project, env=environment, stdin=subprocess.DEVNULL) as shell:
            number = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)[moment % 3]
            time.sleep(0.15 + moment * 0.1)
            shell.send_signal(number)
        assert shell.returncode in (130, -number), moment  # before yurt has set its handlers, the signal ends it
    for row in laptop.quick("ps", "--json").json["data"]:
        assert laptop.ended(row["id"])["state"] == "cancelled"
    if context != "local":
        eventually(lambda: "yurt-" not in Ssh(lab)(context, "squeue -h -t PD,R,CG,S -o %j"))


def test_ctrl_c_while_it_is_pending(laptop: Laptop, lab: Lab) -> None:
    words = ["shell", "--context", "beta", "--sbatch-option", "begin=now+1hour"]
    spawned = laptop.spawn(*words, cwd=laptop.project)
    spawned.expect("job [0-9]+ on beta/main is queued: waiting for its earliest start time")
    run = newest(laptop)["id"]
    spawned.sendcontrol("c")
    spawned.expect(f"yurt: interrupted; run {run} is cancelled\r\n")
    spawned.expect(pexpect.EOF)
    spawned.close()
    assert spawned.exitstatus == 130 and laptop.row(run)["state"] == "cancelled"
    assert run not in Ssh(lab)("beta", "squeue -h -t PD,R,CG,S -o %j")


@pytest.mark.parametrize("context", ["alpha", "local"])
def test_killed_before_it_is_open(laptop: Laptop, context: str) -> None:
    laptop.environment["YURT_CLOCKS"] += " first_session=1"
    assert struck(laptop, "_run", signal.SIGKILL, "shell", "--context", context, "--", "true").code == -signal.SIGKILL
    ended = laptop.ended(newest(laptop)["id"])
    assert (ended["state"], ended["reason"]) == ("failed", "no terminal was opened within 1 s of its start")


@pytest.mark.parametrize("context", ["alpha", "local"])
@pytest.mark.slow("alpha")
def test_killed_while_its_command_runs(laptop: Laptop, context: str) -> None:
    """The silent command ends, and the job after it."""
    laptop.environment["YURT_CLOCKS"] += " next_session=1"
    words = [YURT, "shell", "--context", context, "--", "sh", "-c", "sleep 1; echo open; sleep 1000"]
    environment = {**os.environ, **laptop.environment}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(words, cwd=laptop.project, env=environment, **pipes) as client:  # type: ignore[call-overload]
        assert client.stdout.readline() == b"open\n"
        client.kill()
    ended = laptop.ended(newest(laptop)["id"])
    assert ended["reason"] == "the connection of its terminal was lost, and it was not opened again within 1 s"


def connection_of(spawned: pexpect.spawn) -> int:
    """Return the ssh process of `yurt shell`."""
    children = Path(f"/proc/{spawned.pid}/task/{spawned.pid}/children").read_text().split()
    return next(
        int(pid) for pid in children if b" -t " in Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    )


def opened(laptop: Laptop, *words: str) -> tuple[pexpect.spawn, str]:
    """Open a shell; return it and its run."""
    spawned = laptop.spawn("shell", *words, cwd=laptop.project)
    spawned.expect(" runs on ")
    spawned.sendline("echo $YURT_RUN_ID is op''en")
    spawned.expect(r"(\S+) is open\r\n")
    return spawned, str(spawned.match[1])


def test_the_connection_is_lost(laptop: Laptop) -> None:
    spawned, run = opened(laptop, "--context", "beta")
    os.kill(connection_of(spawned), signal.SIGKILL)
    spawned.expect(f"lost the connection to the shell; return to it within 5 minutes with `yurt shell {run}`")
    spawned.expect(pexpect.EOF)
    spawned.close()
    assert spawned.exitstatus == 4
    done = laptop("shell", run, "--", "sh", "-c", "echo again; exit 2")
    assert (done.code, done.out) == (2, "again\n")
    assert laptop.ended(run)["exit_code"] == 2

    laptop.environment["YURT_CLOCKS"] += " next_session=1"
    spawned, run = opened(laptop, "--context", "alpha")
    spawned.close(force=True)
    ended = laptop.ended(run)
    assert ended["state"] == "failed"
    assert ended["reason"] == "the connection of its terminal was lost, and it was not opened again within 1 s"


@pytest.mark.slow
def test_the_link_is_cut(laptop: Laptop, lab: Lab) -> None:
    """The job is not cancelled: the shell can be continued."""
    spawned, run = opened(laptop, "--context", "beta")
    lab.faults.cut("beta")
    try:
        spawned.expect(f"lost the connection to the shell; return to it within 5 minutes with `yurt shell {run}`")
        spawned.expect(pexpect.EOF)
        spawned.close()
    finally:
        lab.faults.heal("beta")
    assert spawned.exitstatus == 4
    assert laptop("login", "beta").code == 0
    assert laptop("shell", run, "--", "sh", "-c", "exit 2").code == 2
    assert laptop("cancel", run).code == 0


@pytest.mark.parametrize("context", ["alpha", "local"])
def test_the_job_ends_under_the_shell(laptop: Laptop, context: str) -> None:
    spawned, run = opened(laptop, "--context", context)
    assert laptop("cancel", run).code == 0
    spawned.expect("yurt: the job of this shell ended: it is cancelled")
    spawned.expect(pexpect.EOF)
    spawned.close()
    assert spawned.exitstatus not in (0, None) and laptop.ended(run)["state"] == "cancelled"


@pytest.mark.slow
def test_the_node_dies(laptop: Laptop, lab: Lab) -> None:
    spawned, run = opened(laptop, "--context", "alpha")
    node = laptop.row(run)["node"]
    lab.faults.kill_node(f"alpha:{node}")
    try:
        spawned.expect("yurt: the job of this shell ended: it is ", timeout=300)
        spawned.expect(pexpect.EOF)
        spawned.close()
    finally:
        lab.faults.start_node(f"alpha:{node}")
    assert spawned.exitstatus not in (0, None)


def test_refused(laptop: Laptop) -> None:
    done = laptop("shell", "--context", "alpha", "--gpus", "99", "--", "true")
    assert done.code == 5 and newest(laptop) == {}
    assert "--gpus needs a new job" in said(laptop("shell", "--gpus", "1", "x7q4z", "true"), 2)
    assert "standard input is not a terminal" in said(laptop("shell"), 2)
