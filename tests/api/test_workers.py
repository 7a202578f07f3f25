"""max_workers, initializer and initargs of yurt.executor, as in the standard library."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

import yurt
from tests.api.conftest import CONTEXTS, Here
from yurt.api.errors import BrokenExecutorError
from yurt.errors import UserError

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # as if it were a script or a notebook

SECONDS = 120.0

model = "none"


def load(name: str) -> None:
    global model  # noqa: PLW0603  (as a script does)
    print("loading", name)
    model = name


def predict(x: int) -> tuple[str, int]:
    return model, x


def slowly(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def fails_in_the_second_task(marker: str) -> None:
    try:
        Path(marker).mkdir()
    except FileExistsError:
        raise ValueError("no GPU here") from None


@pytest.mark.parametrize("context", CONTEXTS)
def test_the_initializer_runs_once_in_each_process_before_its_calls(here: Here, context: str) -> None:
    with yurt.executor(context, snapshot=False, initializer=load, initargs=("large",)) as executor:
        single = executor.submit(predict, 1)
        assert list(executor.map(predict, range(3), chunksize=3, timeout=SECONDS)) == [("large", x) for x in range(3)]
        assert single.result(SECONDS) == ("large", 1)
    assert model == "none"
    tasks = [task for sweep in yurt.runs(limit=1) for task in sweep.tasks]
    said = [task.stdout for task in tasks]
    # On this machine one process may make both calls.
    assert said == ["loading large\n"] * 2 or (context == "local" and sorted(said) == ["", "loading large\n"])


def test_a_failing_initializer_breaks_the_executor(here: Here, tmp_path: Path, caplog: Any) -> None:
    marker = str(tmp_path / "marker")
    with yurt.executor(
        "local", snapshot=False, max_workers=2, initializer=fails_in_the_second_task, initargs=(marker,)
    ) as executor:
        calls = [executor.submit(slowly, 2.0) for _each in range(6)]
        errors = [call.exception(SECONDS) for call in calls]
        with pytest.raises(BrokenExecutor, match="no GPU here"):
            executor.submit(slowly, 0)
    broken = [error for error in errors if error is not None]
    assert len(broken) == 5 and all(isinstance(error, BrokenExecutorError) for error in broken)
    assert "initializer" in str(broken[0]) and "raise ValueError" in str(broken[0].__cause__)
    assert [call.result() for call in calls if call.exception() is None] == [2.0], "a running call continues"
    (record,) = (each for each in caplog.records if each.name == "concurrent.futures")
    assert record.levelno == logging.CRITICAL and "ValueError: no GPU here" in record.getMessage()
    states = sorted(task.state for task in yurt.runs(sweep="@last-sweep"))
    # On a busy machine, a task may have started before the others were cancelled.
    assert states.count("cancelled") >= 1 and states.count("completed") == 1, states


def fails_in_the_first_task() -> None:
    if os.environ["YURT_TASK_INDEX"] == "0":
        raise ValueError("no GPU here")


def test_a_call_that_finished_before_the_executor_broke_has_its_result(here: Here) -> None:
    with yurt.executor("local", snapshot=False, initializer=fails_in_the_first_task) as executor:
        receiver = executor._sender.receiver
        receiver._shortest = receiver._longest = 4.0  # both tasks finish between two polls
        with executor.together():
            broken, fine = executor.submit(abs, -1), executor.submit(abs, -2)
        assert fine.result(SECONDS) == 2
        assert isinstance(broken.exception(SECONDS), BrokenExecutor)


def dies(how: str) -> None:
    if how == "killed":
        os.kill(os.getpid(), 9)
    os._exit(int(how))


@pytest.mark.parametrize(("how", "reason"), [("3", "exit code 3"), ("0", "abruptly"), ("killed", "signal 9")])
def test_a_process_that_dies_in_the_initializer_breaks_the_executor(here: Here, how: str, reason: str) -> None:
    with yurt.executor("local", snapshot=False, max_workers=1, initializer=dies, initargs=(how,)) as executor:
        calls = [executor.submit(abs, each) for each in range(4)]
        errors = [call.exception(SECONDS) for call in calls]
        with pytest.raises(BrokenExecutor, match="the initializer of the executor failed: its process ended abruptly"):
            executor.submit(abs, 1)
    assert all(isinstance(error, BrokenExecutorError) for error in errors), errors
    assert reason in str(errors[0])
    assert not any(task.state == "running" for task in yurt.runs(sweep="@last-sweep"))


def test_an_invalid_initializer(here: Here) -> None:
    with pytest.raises(TypeError, match="initializer must be a callable"):
        yurt.executor("local", initializer=5)  # type: ignore[arg-type]
    with pytest.raises(yurt.CallError, match=r"cannot pickle the initializer load\(\)"):
        yurt.executor("local", initializer=load, initargs=(threading.Lock(),))


def test_max_workers_is_max_parallel(here: Here) -> None:
    for name in ("max_workers", "max_parallel"):
        for number in (0, -1):
            with pytest.raises(ValueError, match=f"{name} must be greater than 0"):
                yurt.executor("local", **{name: number})  # type: ignore[arg-type]
        with yurt.executor("local", snapshot=False, **{name: 1}) as executor:  # type: ignore[arg-type]
            assert executor._max_workers == 1
            assert list(executor.map(slowly, [0.4, 0.4], timeout=SECONDS)) == [0.4, 0.4]
        first, second = sorted(yurt.runs(sweep="@last-sweep"), key=lambda task: task.started or 0)
        assert (first.ended or 0) <= (second.started or 0) + 0.2
    with pytest.raises(UserError, match="max_workers and max_parallel cannot be combined"):
        yurt.executor("local", max_workers=2, max_parallel=2)
    assert yurt.executor("local")._max_workers > 1000, "dask submits this many calls at a time"
