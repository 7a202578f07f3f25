"""yurt.executor on this machine and on both clusters, through the interface of concurrent.futures."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, as_completed, wait
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

import yurt
from tests.api.conftest import CONTEXTS, Here
from yurt.api import batch, pickles
from yurt.api.errors import RemoteError, RemoteTraceback
from yurt.api.executor import YurtExecutor
from yurt.config import facts
from yurt.errors import NotFoundError, RefusedError, UserError
from yurt.testing.waiting import eventually

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # as if it were a script or a notebook

SECONDS = 120.0


class Point:
    """A class defined by the user."""

    def __init__(self, x: float, y: float) -> None:
        self.x, self.y = x, y


def scaled(point: Point, by: float = 2) -> Point:
    print("scaling")
    yurt.log(step=1, x=point.x * by)
    return Point(point.x * by, point.y * by)


class OddError(Exception):
    """An exception that pickle cannot rebuild from its arguments."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")
        self.one, self.lock = one, threading.Lock()


class FileError(OSError):
    """One whose constructor accepts the arguments that pickle passes, with another result."""

    def __init__(self, file: str, why: str = "unknown") -> None:
        super().__init__(2, f"no {file}: {why}", file)


def fails(how: str) -> Any:
    if how == "raises":
        raise KeyError("nothing there")
    if how == "odd":
        raise OddError(1, 2)
    if how == "file":
        raise FileError("data.csv", "not downloaded")
    if how == "locked":
        raise ValueError("held", threading.Lock())
    if how == "exits":
        sys.exit(3)
    if how == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "large":
        return bytes(2 << 20)
    return threading.Lock()


def slowly(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def until(file: str) -> str:
    deadline = time.monotonic() + 100
    while not Path(file).exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    return file


@pytest.mark.parametrize("context", CONTEXTS)
def test_functions_run_on_the_context_and_return_their_values(here: Here, context: str) -> None:
    (here.project / "own_module.py").write_text("def tripled(x):\n    return 3 * x\n")
    before = here.sweeps()
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(here.project))
        import own_module  # type: ignore[import-not-found]

        with yurt.executor(context, cpus=1, time="5m", name="points", tags=["api"]) as executor:
            assert isinstance(executor, Executor)
            points = executor.map(scaled, [Point(1, 2), Point(3, 4)], [2, 0.5], timeout=SECONDS)
            other = executor.submit(own_module.tripled, x=5)
            more = 1
            nested = executor.submit(lambda: [point.x for point in map(scaled, [Point(more, 1), Point(10, 1)])])
            found = list(points)
            assert [(type(each) is Point, each.x, each.y) for each in found] == [(True, 2, 4), (True, 1.5, 2.0)]
            assert (other.result(SECONDS), nested.result(SECONDS)) == (15, [2, 20])
    (sweep,) = set(here.sweeps()) - set(before)
    assert [each.task for each in (other, nested)] == [f"{sweep}.2", f"{sweep}.3"]
    assert here.yurt("ps", "--json").json["data"][0]["tasks"] == 4
    shown = here.yurt("show", sweep, "--json").json["data"]
    assert shown["run"]["command"] == ["python:scaled+tripled+lambda"] and shown["run"]["name"] == "points"
    assert shown["rows"][1]["params"]["by"] == 0.5 and shown["rows"][1]["metrics"]["x"] == 1.5
    assert "scaling" in here.yurt("logs", f"{sweep}.0").out
    tasks = yurt.runs(sweep=sweep, params={"by": 2})
    assert [task.id for task in tasks] == [f"{sweep}.0"] and tasks[0].result().x == 2


@pytest.mark.parametrize("context", CONTEXTS)
def test_errors_of_calls(here: Here, context: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pickles, "LARGEST", 10**6)
    with yurt.executor(context) as executor:
        kinds = ("raises", "odd", "file", "locked", "exits", "dies", "large", "unpicklable")
        calls = {kind: executor.submit(fails, kind) for kind in kinds}
        calls["absent"] = executor.submit(eval, "__import__('no_such_module_anywhere')")
        errors = {kind: call.exception(SECONDS) for kind, call in calls.items()}
    raised = errors["raises"]
    assert isinstance(raised, KeyError) and raised.args == ("nothing there",)
    assert isinstance(raised.__cause__, RemoteTraceback)
    text = "".join(traceback.format_exception(raised))
    assert 'raise KeyError("nothing there")' in text and "in fails" in text and "returns.py" not in text
    odd, missing = errors["odd"], errors["file"]
    assert isinstance(odd, OddError) and (str(odd), odd.one, hasattr(odd, "lock")) == ("1 and 2", 1, False)
    assert isinstance(odd.__cause__, RemoteTraceback) and "raise OddError(1, 2)" in str(odd.__cause__)
    assert isinstance(missing, FileError) and (missing.errno, missing.filename) == (2, "data.csv")
    assert missing.strerror == "no data.csv: not downloaded"
    assert isinstance(errors["locked"], RemoteError) and str(errors["locked"]).startswith("ValueError: ('held', <")
    assert isinstance(errors["exits"], SystemExit) and errors["exits"].code == 3
    assert isinstance(errors["absent"], ModuleNotFoundError)
    dies, large, unpicklable = errors["dies"], errors["large"], errors["unpicklable"]
    assert isinstance(dies, yurt.CallError) and isinstance(large, yurt.CallError)
    assert isinstance(unpicklable, yurt.CallError)
    assert (
        dies.code == "call-without-result" and "killed by signal 9" in dies.message and dies.task == calls["dies"].task
    )
    assert dies.hint == f"see its output with `yurt logs {dies.task}`"
    assert large.code == "result-not-sent" and "the result is 3 MB; the limit is 1 MB" in large.message
    assert unpicklable.code == "result-not-sent" and "lock" in unpicklable.message
    sweep = calls["dies"].task.partition(".")[0]
    assert {task.state for task in yurt.runs(sweep=sweep)} == {"failed"}


@pytest.mark.parametrize("context", CONTEXTS)
def test_another_version_of_python_on_the_site(here: Here, context: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pickles, "HERE", "3.10")
    with yurt.executor(context, python="python3") as executor:
        wrong, by_name = executor.submit(lambda: 1), executor.submit(max, 3, 4)
        error = wrong.exception(SECONDS)
        assert by_name.result(SECONDS) == 4, "a call pickled by name runs with any Python"
    assert isinstance(error, yurt.CallError) and error.code == "call-python"
    assert "submitted by Python 3.10 and runs on Python 3." in error.message and "python='python3.10'" in error.hint
    with yurt.executor(context, python="no-such-python") as executor:
        error = executor.submit(max, 3, 4).exception(SECONDS)
    assert isinstance(error, yurt.CallError) and "no-such-python not found on " in error.message


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.slow("alpha")
def test_five_hundred_submits_from_four_threads_are_one_sweep(here: Here, context: str) -> None:
    before = here.sweeps()
    count = 500 if context == "alpha" else 24
    futures: list[Any] = []
    with yurt.executor(context, snapshot=False, max_parallel=4) as executor:

        def submit(numbers: Iterable[int]) -> None:
            futures.extend((number, executor.submit(pow, number, 2)) for number in numbers)

        with pytest.MonkeyPatch.context() as patch:
            for name in (
                "SINGLE_DELAY",
                "BURST_DELAY",
                "MAX_DELAY",
            ):  # a busy machine may pause in the middle of a burst
                patch.setattr(batch, name, SECONDS)
            threads = [threading.Thread(target=submit, args=(range(first, count - 1, 4),)) for first in range(4)]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
        submit([count - 1])
        eventually(lambda: all(future.run for _number, future in futures))
        assert len(set(here.sweeps()) - set(before)) == 1
        if count <= 24:
            assert all(future.result(SECONDS) == number * number for number, future in futures)
        else:
            executor.shutdown(wait=False, cancel_futures=True)
    if count > 24:
        assert sum(future.cancelled() for _number, future in futures) > count / 2

        def cancelled() -> int:
            return Counter(task.state for task in yurt.runs(sweep="@last-sweep"))["cancelled"]

        eventually(lambda: cancelled() > count / 2)  # Slurm cancels hundreds of tasks one by one


@pytest.mark.parametrize("context", CONTEXTS)
def test_cancelled_before_it_runs(here: Here, context: str, tmp_path: Path) -> None:
    go = str(tmp_path / "go") if context == "local" else f"/lustre/scratch/alice/go-{time.time()}"
    with yurt.executor(context, max_parallel=1) as executor:
        first, second, third = (executor.submit(until, go) for _each in range(3))
        eventually(first.running)
        assert not first.cancel() and second.cancel() and second.cancelled()
        assert wait([second], timeout=1).done == {second}
        eventually(lambda: yurt.runs(sweep=second.task.partition(".")[0])[1].state == "cancelled")
        with yurt.executor(context) as other:
            other.submit(os.mkdir, go).result(SECONDS)
        assert first.result(SECONDS) == third.result(SECONDS) == go


def test_the_rest_of_the_interface(here: Here) -> None:
    called: list[int] = []
    with yurt.executor("local") as executor:
        futures = [executor.submit(slowly, each / 10) for each in (3, 1)]
        for each in futures:
            each.add_done_callback(lambda future: called.append(int(future.result() * 10)))
        assert {future.result() for future in as_completed(futures, timeout=SECONDS)} == {0.3, 0.1}
        assert list(executor.map(pow, range(7), [2] * 7, chunksize=3, timeout=SECONDS)) == [n**2 for n in range(7)]
        with pytest.raises(ValueError, match="chunksize"):
            executor.map(pow, [1], [1], chunksize=0)
        with pytest.raises(TimeoutError):
            list(executor.map(slowly, [5], timeout=0.01))
        assert list(executor.map(pow, [], [])) == []
        not_sent = executor.submit(slowly, threading.Lock()).exception(0)
        assert isinstance(not_sent, yurt.CallError) and "cannot pickle the arguments of slowly()" in not_sent.message
    assert sorted(called) == [1, 3], "shutdown waits for the callbacks"
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(slowly, 1)
    executor.shutdown()


INVALID: list[tuple[dict[str, Any], str]] = [
    ({"tags": "one"}, "option tags must be a list, not str"),
    ({"tags": [1]}, "option tags must be a list of strings, but contains 1"),
    ({"name": 5}, "option name must be a string, not int"),
    ({"cpus": 1.5}, "option cpus must be an integer or a string, not float"),
    ({"cpus": 100_000}, "100,?000"),
    ({"time": "soon"}, "--time"),
    ({"mem": -1}, "--mem"),
    ({"retries": -1}, "option retries must be at least 0, not -1"),
    ({"retries": "2"}, "option retries must be an integer, not str"),
    ({"requeue": "yes"}, "option requeue must be True or False, not str"),
    ({"max_requeues": 2}, "--max-requeues needs --requeue"),
    ({"variables": "A=1"}, "option variables must be a mapping, not str"),
    ({"sbatch": {"array": "1-5"}}, "array"),
    ({"secrets": ["NO_SUCH_SECRET_ANYWHERE"]}, "NO_SUCH_SECRET_ANYWHERE"),
]


def test_invalid_options_raise_immediately(here: Here) -> None:
    with pytest.raises(TypeError, match=r"no option 'cpu'; did you mean 'cpus'\?"):
        yurt.executor("local", cpu=2)  # type: ignore[call-arg]
    with pytest.raises(UserError, match="--cpus"):
        yurt.executor("local", cpus="many")
    with pytest.raises(NotFoundError, match="no-such-context"):
        yurt.executor("no-such-context")
    for options, message in INVALID:
        with pytest.raises((UserError, RefusedError), match=message):
            yurt.executor("local", **options)
    assert not here.sweeps()


@pytest.mark.lab
@pytest.mark.parametrize("context", ["alpha"])
def test_a_request_that_the_site_rejects_is_raised(here: Here, context: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, if the facts about the site are recorded, and otherwise by the call."""
    assert here.yurt("context", "probe", context).code == 0
    for options in ({"mem": "900G"}, {"partition": "absent"}):
        with pytest.raises(RefusedError, match=next(iter(options.values()))) as refused:
            yurt.executor(context, **options)  # type: ignore[arg-type]
        assert refused.value.code == "impossible"
    with monkeypatch.context() as patch:
        patch.setattr(facts, "load", lambda _context: None)
        executor = yurt.executor(context, mem="900G", snapshot=False)
    with executor:
        error = executor.submit(slowly, 1).exception(SECONDS)
    assert isinstance(error, RefusedError) and "900G" in str(error)


PROGRAM = """\
import os, sys, time, yurt

def work(x, file):
    while not os.path.exists(file):
        time.sleep(0.1)
    return x * 2

if __name__ == "__main__":
    executor = yurt.executor("local")
    futures = [executor.submit(work, x, os.path.abspath("go")) for x in range(3)]
    for each in futures:
        each.add_done_callback(lambda future: print("value", future.result(), flush=True))
    while not all(each.run for each in futures):
        time.sleep(0.05)
    if sys.argv[1] == "interrupted":
        with executor:
            print("out", flush=True)
            time.sleep(1000)
    print("out", flush=True)
    if sys.argv[1] == "killed":
        time.sleep(1000)
"""


Program = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def program(here: Here) -> Iterator[Program]:
    """Starts a program that stops in some way while its submitted calls wait for a file `go`."""
    started: list[subprocess.Popen[str]] = []

    def start(how: str) -> subprocess.Popen[str]:
        (here.project / "program.py").write_text(PROGRAM)
        command = [sys.executable, "program.py", how]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        assert started[0].stdout is not None and started[0].stdout.readline() == "out\n"
        return started[0]

    yield start
    (here.project / "go").touch()
    for each in started:
        each.kill()
        each.communicate()


def test_a_program_without_shutdown_waits_for_its_calls(here: Here, program: Program) -> None:
    done = program("ends")
    (here.project / "go").touch()
    out, err = done.communicate(timeout=SECONDS)
    assert (done.returncode, err) == (0, "") and sorted(out.split()) == ["0", "2", "4", "value", "value", "value"]


@pytest.mark.parametrize("how", ["killed", "interrupted"])
def test_calls_of_a_killed_program_can_be_read_by_the_next(here: Here, program: Program, how: str) -> None:
    done = program(how)
    (sweep,) = here.sweeps()
    done.send_signal(signal.SIGKILL if how == "killed" else signal.SIGINT)
    out, err = done.communicate(timeout=SECONDS)
    assert out == ""
    assert done.returncode == -signal.SIGKILL if how == "killed" else f"yurt cancel {sweep}" in err
    (here.project / "go").touch()
    (run,) = yurt.runs()
    assert run.id == sweep and run.wait(SECONDS) == "completed"
    assert [task.result() for task in run.tasks] == [0, 2, 4]


def test_retried_calls_are_the_same_calls(here: Here) -> None:
    flag = here.home / "flag"
    with yurt.executor("local") as executor:
        futures = [executor.submit(os.path.getsize if at == 1 else len, str(flag)) for at in range(3)]
        assert [type(each.exception(SECONDS)) for each in futures] == [type(None), FileNotFoundError, type(None)]
    sweep = futures[1].task.partition(".")[0]
    flag.write_text("seven" * 3)
    again = here.yurt("retry", "--failed", sweep, "--json").json["data"][0]["run"]["id"]
    (run,) = (each for each in yurt.runs() if each.id == again)
    assert run.wait(SECONDS) == "completed" and [task.result() for task in run.tasks] == [15]


def test_an_executor_closes_when_it_is_garbage_collected(here: Here) -> None:
    executor: YurtExecutor | None = yurt.executor("local")
    assert executor is not None
    future = executor.submit(max, 1, 2)
    threads = [each for each in threading.enumerate() if each.name.startswith("yurt ")]
    executor = None
    assert future.result(SECONDS) == 2
    eventually(lambda: not any(each.is_alive() for each in threads))
