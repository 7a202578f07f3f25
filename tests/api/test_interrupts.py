"""Ctrl-C and the exit of the interpreter: what yurt prints about calls is what happens to them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import yurt
from tests.api.conftest import Here
from yurt.lab import Lab
from yurt.testing.waiting import eventually

SECONDS = 120.0

PROGRAM = """\
import os, signal, sys, time
from concurrent.futures import as_completed, wait
import yurt

context, how, block, go = sys.argv[1:]

def work(x, file):
    while not os.path.exists(file):
        time.sleep(0.1)
    return x * 2

def submitted():
    deadline = time.monotonic() + 60
    while not any(run.state in ("queued", "running") for run in yurt.runs()) and time.monotonic() < deadline:
        time.sleep(0.1)
    print("out", flush=True)

def waits(executor):
    files = ["/", go, go, go]
    if how == "map" or how == "chunks":
        results = executor.map(work, range(4), files, chunksize=2 if how == "chunks" else 1)
        submitted()
        print(list(results))
    elif how == "body":
        for result in executor.map(work, range(4), files):
            submitted()
            time.sleep(1000)
    else:
        calls = [executor.submit(work, x, file) for x, file in enumerate(files)]
        submitted()
        if how == "as_completed":
            print([call.result() for call in as_completed(calls)])
        elif how == "wait":
            wait(calls)
        elif how == "result":
            print([call.result() for call in calls])
        elif how == "shutdown" and not block:
            executor.shutdown()

executor = yurt.executor(context, snapshot=False, max_parallel=2, time="5m")
if block:
    with executor:
        waits(executor)
else:
    waits(executor)
"""

TERMINAL = """\
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Makes standard input the controlling terminal, then runs a command."""


class Program:
    """A running program. `stop` sends one Ctrl-C and returns what the program printed after it started to wait."""

    def __init__(self, words: list[str], *, terminal: bool) -> None:
        self._terminal: int | None = None
        if terminal:
            self._terminal, slave = os.openpty()
            command = [sys.executable, "-c", TERMINAL, sys.executable, "-X", "faulthandler", *words]
            self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
            os.close(slave)
        else:
            self.process = subprocess.Popen(
                [sys.executable, "-X", "faulthandler", *words],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._output = self._terminal if self._terminal is not None else self._pipe()
        self._read = b""
        self.read_until("out")

    def read_until(self, text: str) -> None:
        while text.encode() not in self._read:
            chunk = os.read(self._output, 4096)
            assert chunk, self._read
            self._read += chunk
        self._read = self._read.partition(text.encode())[2]

    def _pipe(self) -> int:
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def stop(self) -> str:
        eventually(self._is_blocked)
        if self._terminal is not None:
            os.write(self._terminal, b"\x03")
        else:
            os.kill(self.process.pid, signal.SIGINT)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)  # faulthandler prints where its threads are
            raise AssertionError(f"it does not end: {self.rest()}") from None
        return self.rest()

    def _is_blocked(self) -> bool:
        """Whether the main thread waits. CPython overlooks a signal that arrives just before a wait begins."""
        if self.process.poll() is not None:
            return True
        first, second = (self._switches() for _each in range(2))
        return first == second

    def _switches(self) -> tuple[str, str]:
        """Return the state of the main thread, and how often it has begun to wait, after a moment."""
        time.sleep(0.05)
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        state, switches = (re.search(rf"^{key}:\s+(\w+)", status, re.M) for key in ("State", "voluntary_ctxt_switches"))
        assert state is not None and switches is not None
        return (state[1], switches[1]) if state[1] == "S" else (state[1], str(time.monotonic()))

    def rest(self) -> str:
        found = self._read
        while True:
            try:
                chunk = os.read(self._output, 4096)
            except OSError:  # the terminal is closed
                chunk = b""
            if not chunk:
                return found.decode().replace("\r\n", "\n")
            found += chunk

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        if self._terminal is not None:
            os.close(self._terminal)
        elif self.process.stdout is not None:
            self.process.stdout.close()


@pytest.fixture
def start(here: Here) -> Iterator[Callable[..., Program]]:
    """Starts programs in the user's project."""
    started: list[Program] = []

    def starting(text: str, *arguments: str, terminal: bool = False) -> Program:
        (here.project / "program.py").write_text(text)
        started.append(Program(["program.py", *arguments], terminal=terminal))
        return started[-1]

    yield starting
    for each in started:
        each.close()


WAYS = ["map", "chunks", "body", "as_completed", "wait", "result", "shutdown", "end"]


def cases() -> Iterator[Any]:
    for how in WAYS:
        for block in ("with", ""):
            yield pytest.param("local", (how, block), id=f"local-{how}-{block or 'without'}")
    for how, block in (("map", "with"), ("body", ""), ("as_completed", ""), ("end", "with")):
        yield pytest.param("alpha", (how, block), id=f"alpha-{how}-{block or 'without'}", marks=pytest.mark.lab)


@pytest.mark.parametrize(("context", "case"), list(cases()))
@pytest.mark.slow(
    "alpha-body-without",
    "alpha-as_completed-without",
    "local-chunks-with",
    "local-wait-with",
    "local-result-with",
    "local-map-without",
    "local-as_completed-with",
)
def test_calls_continue_after_one_ctrl_c(
    here: Here, start: Callable[..., Program], tmp_path: Path, context: str, case: tuple[str, str]
) -> None:
    how, block = case
    go = str(tmp_path / "go") if context == "local" else f"/lustre/scratch/alice/go-{time.time()}"
    terminal = context == "alpha" or how in ("map", "end")
    program = start(PROGRAM, context, how, block, go, terminal=terminal)
    printed = program.stop()
    assert program.process.returncode == -signal.SIGINT, printed
    (sweep,) = here.sweeps()
    said = re.search(rf"yurt: sweep {sweep} continues on {context} \((\d) unfinished calls?\)", printed)
    assert said is not None and int(said[1]) <= (2 if how == "chunks" else 4), printed
    assert f"`yurt.runs(sweep='{sweep}')`" in printed and f"`yurt cancel {sweep}`" in printed
    assert "not submitted" not in printed and "Exception ignored" not in printed
    (run,) = (each for each in yurt.runs() if each.id == sweep)
    assert not {"cancelled", "failed"} & {task.state for task in run.tasks}
    if context == "local":
        Path(go).mkdir()
    else:
        with yurt.executor(context, snapshot=False) as executor:
            executor.submit(os.mkdir, go).result(SECONDS)
    assert run.wait(SECONDS) == "completed"
    assert [task.result() for task in run.tasks] == ([[0, 2], [4, 6]] if how == "chunks" else [0, 2, 4, 6])


NOT_SUBMITTED = """\
import time, yurt
with yurt.executor("local", snapshot=False) as executor:
    with executor.together():
        calls = [executor.submit(time.sleep, 60) for _each in range(3)]
        print("out", flush=True)
        time.sleep(1000)
"""


def test_calls_that_are_not_submitted_are_cancelled(here: Here, start: Callable[..., Program]) -> None:
    program = start(NOT_SUBMITTED)
    printed = program.stop()
    assert program.process.returncode == -signal.SIGINT and printed.count("yurt:") == 1, printed
    assert "yurt: 3 calls were not submitted" in printed and here.sweeps() == []


CANCELS = """\
import sys, time, yurt
with yurt.executor("local", snapshot=False, max_parallel=1) as executor:
    calls = [executor.submit(time.sleep, 60) for _each in range(4)]
    try:
        while not any(call.running() for call in calls):
            time.sleep(0.05)
        print("out", flush=True)
        calls[0].result()
    except KeyboardInterrupt:
        executor.shutdown(wait=False, cancel_futures=True)
        raise
"""


def test_a_program_that_cancels_its_calls_after_ctrl_c(here: Here, start: Callable[..., Program]) -> None:
    """The message counts the call that runs and cannot be cancelled; the other tasks are cancelled on the context."""
    program = start(CANCELS)
    printed = program.stop()
    (sweep,) = here.sweeps()
    assert f"sweep {sweep} continues on local (1 unfinished call)" in printed
    eventually(lambda: sorted(task.state for task in yurt.runs(sweep=sweep)) == ["cancelled"] * 3 + ["running"])
    assert here.yurt("cancel", sweep).code == 0


SAVED = """\
import sys, time, yurt
executor = yurt.executor("alpha", snapshot=False)
call = executor.submit(abs, -5)
while not call.run:
    time.sleep(0.05)
print("out", flush=True)
call.result()
"""


@pytest.mark.lab
@pytest.mark.parametrize("context", ["alpha"])
def test_calls_saved_while_the_site_is_unreachable(
    here: Here, context: str, start: Callable[..., Program], lab: Lab
) -> None:
    lab.faults.cut(context)
    try:
        printed = start(SAVED).stop()
        (sweep,) = here.sweeps()
    finally:
        lab.faults.heal(context)
    assert f"yurt: sweep {sweep} is saved, and the next yurt command submits it if necessary" in printed
    (run,) = (each for each in yurt.runs() if each.id == sweep)
    assert run.wait(SECONDS) == "completed" and run.tasks[0].result() == 5


STUCK = """\
import time, yurt
from yurt.api import sender
from yurt.lifecycle.outbox import enqueue as saving

def hangs(*given, **named):
    print("out", flush=True)
    time.sleep(1000)

saving.send_waiting = hangs
with yurt.executor("local", snapshot=False) as executor:
    executor.submit(abs, -6).result()
"""


def test_a_second_ctrl_c_ends_the_wait_for_a_submission(here: Here, start: Callable[..., Program]) -> None:
    """A submission that hangs; the sweep is saved before it."""
    program = start(STUCK)
    os.kill(program.process.pid, signal.SIGINT)
    program.read_until("yurt: waiting up to 15 s for local; Ctrl-C stops the wait")
    printed = program.stop()
    (sweep,) = here.sweeps()
    assert program.process.returncode == -signal.SIGINT
    assert f"yurt: sweep {sweep} is saved, and the next yurt command submits it if necessary" in printed


LOCKED = """\
import time, yurt
with yurt.executor("local", snapshot=False) as executor:
    calls = [executor.submit(time.sleep, 60) for _each in range(3)]
    while not all(call.run for call in calls):
        time.sleep(0.05)
    for call in calls:
        call._condition.acquire()
    time.sleep(3)
    print("out", flush=True)
    time.sleep(1000)
"""


def test_ctrl_c_in_the_first_steps_of_wait(here: Here, start: Callable[..., Program]) -> None:
    """It leaves the futures locked: the standard library cannot release them."""
    program = start(LOCKED)
    started = time.monotonic()
    printed = program.stop()
    assert program.process.returncode == -signal.SIGINT and time.monotonic() - started < 20
    (sweep,) = here.sweeps()
    assert f"sweep {sweep} continues on local (3 unfinished calls)" in printed
    assert here.yurt("cancel", sweep).code == 0


BROKEN_OFF = """\
import time, yurt
def work(x):
    time.sleep(x)
    return x
executor = yurt.executor("local", snapshot=False, max_parallel=1)
for result in executor.map(work, [0, 60, 60, 60]):
    break
print("out", flush=True)
"""


def test_a_map_that_is_not_consumed_cancels_its_calls(here: Here, start: Callable[..., Program]) -> None:
    """As in the standard library, if there was no Ctrl-C; the call that runs cannot be cancelled."""
    program = start(BROKEN_OFF)
    (sweep,) = here.sweeps()
    deadline = time.monotonic() + SECONDS
    while [task.state for task in yurt.runs(sweep=sweep)].count("cancelled") < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    states = [task.state for task in yurt.runs(sweep=sweep)]
    assert states[0] == "completed" and states.count("cancelled") >= 2, states
    assert here.yurt("cancel", sweep).code == 0
    program.process.wait(SECONDS)
    assert program.process.returncode == 0


AT_EXIT = """\
import atexit, os, sys, threading, time, yurt

def say(text):
    os.write(1, f"{text}\\n".encode())  # in one piece; print() of two threads would mix, or abort the exit

def late(name):
    try:
        say(f"{name} accepted {executor.submit(abs, -1)}")
    except RuntimeError as error:
        say(f"{name} {error}")

def after_main(name):
    while threading.main_thread().is_alive():
        time.sleep(0.05)
    late(name)

executor = yurt.executor("local", snapshot=False)
kind = sys.argv[1]
if kind == "used":
    print(executor.submit(abs, -7).result(60), flush=True)
atexit.register(late, "atexit")
if kind != "alone":
    threading.Thread(target=after_main, args=("thread",)).start()
    threading.Thread(target=after_main, args=("daemon",), daemon=True).start()
print("out", flush=True)
"""


@pytest.mark.parametrize("kind", ["used", "unused", "alone"])
def test_submit_during_the_exit_of_the_interpreter(here: Here, start: Callable[..., Program], kind: str) -> None:
    program = start(AT_EXIT, kind)
    program.process.wait(SECONDS)
    lines = [line for line in program.rest().splitlines() if line]
    refused = "cannot schedule new futures after interpreter shutdown"
    expected = {f"{name} {refused}" for name in (("atexit",) if kind == "alone" else ("atexit", "thread"))}
    assert expected <= set(lines) <= expected | {f"daemon {refused}"}
    assert program.process.returncode == 0 and here.sweeps() == here.sweeps()[: kind == "used"]


FIRST_AT_EXIT = """\
import atexit, concurrent.futures.thread
print("out", flush=True)
@atexit.register
def late():
    import yurt
    try:
        yurt.executor("local", snapshot=False).submit(abs, -1)
    except RuntimeError as error:
        print(error)
"""


def test_an_executor_created_during_the_exit(here: Here, start: Callable[..., Program]) -> None:
    program = start(FIRST_AT_EXIT)
    program.process.wait(SECONDS)
    assert program.rest().strip() == "cannot schedule new futures after interpreter shutdown"


def test_sigterm_leaves_the_calls_running(here: Here, start: Callable[..., Program], tmp_path: Path) -> None:
    program = start(PROGRAM, "local", "map", "with", str(tmp_path / "go"))
    program.process.terminate()
    assert program.process.wait(SECONDS) == -signal.SIGTERM
    (tmp_path / "go").mkdir()
    (run,) = yurt.runs()
    assert run.wait(SECONDS) == "completed" and [task.result() for task in run.tasks] == [0, 2, 4, 6]
