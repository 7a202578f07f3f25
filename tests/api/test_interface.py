"""yurt.executor behaves like the executors of the standard library."""

from __future__ import annotations

import asyncio
import os
import pkgutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    FIRST_EXCEPTION,
    Executor,
    Future,
    ProcessPoolExecutor,
    as_completed,
    wait,
)
from pathlib import Path
from typing import Any, cast

import pytest

import yurt
from tests.api.conftest import Here
from yurt.api import batch as batching
from yurt.api import sender
from yurt.api.batch import Batch, Posted
from yurt.api.future import Call
from yurt.errors import UserError
from yurt.lifecycle.plan import plan as planning

SECONDS = 120.0


def outcome(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Exception as error:
        return type(error).__name__, str(error)


def counted() -> Iterator[int]:
    yield from (1, 2, 3)


def unequal(executor: Executor) -> Any:
    return list(executor.map(pow, counted(), [2, 2])), outcome(lambda: executor.map(pow, cast(Any, 5)))


def values_of_others(executor: Executor) -> Any:
    """The arguments of a map wait for the results of calls submitted just before it."""
    before = [executor.submit(pow, each, 2) for each in (1, 2)]
    return list(executor.map(abs, (each.result(SECONDS) for each in before)))


def closed_early(executor: Executor) -> Any:
    found = executor.map(abs, [-1, -2, -3], chunksize=2, timeout=SECONDS)
    first = next(found)
    found.close()  # type: ignore[attr-defined]
    return first, list(found)


def first_error(executor: Executor) -> Any:
    calls: list[Future[Any]] = [executor.submit(time.sleep, 0.2), executor.submit(divmod, 1, 0)]
    done = wait(calls, timeout=SECONDS, return_when=FIRST_EXCEPTION).done
    return calls[1] in done, type(calls[1].exception()), calls[1].cancel(), calls[1].running()


def in_order(executor: Executor) -> Any:
    found = executor.map(divmod, [1, 1, 1], [1, 0, 1])
    return next(found), outcome(lambda: next(found)), list(found)


def shut(executor: Executor) -> Any:
    last = executor.submit(abs, -7)
    last.add_done_callback(lambda _call: executor.shutdown(wait=False))
    value = last.result(SECONDS)
    executor.shutdown()
    return value, outcome(lambda: executor.submit(abs, 1)), outcome(lambda: executor.map(abs, [1]))


def interrupted_there(executor: Executor) -> Any:
    """The KeyboardInterrupt of a function is an exception like any other: it cancels the rest of a map."""
    found = executor.map(exec, ["raise KeyboardInterrupt", "1", "1"])
    with pytest.raises(KeyboardInterrupt):
        next(found)
    return list(found)


def named(executor: Executor) -> Any:
    """`submit` reserves no name of an argument."""
    call = executor.submit(dict, [("one", 1)], self=2, fn=3)
    wrong: Any = executor.submit
    return call.result(SECONDS), outcome(wrong)[0], outcome(lambda: wrong(fn=dict))[0]


def repeated(executor: Executor) -> Any:
    call: Future[Any] = executor.submit(abs, -1)
    slow: Future[Any] = executor.submit(time.sleep, 3)
    first = wait([call, slow, call], timeout=SECONDS, return_when=FIRST_COMPLETED)
    return first == ({call}, {slow}), list(as_completed([call] * 3, SECONDS)) == [call], slow.exception(SECONDS)


def not_yet(executor: Executor) -> Any:
    slow = executor.submit(time.sleep, 1)
    early = outcome(lambda: slow.result(0)), outcome(lambda: slow.exception(0.01)), slow.done()
    return early, wait([slow], timeout=0).not_done == {slow}, wait([slow], timeout=SECONDS).done == {slow}


def shut_at_once(executor: Executor) -> Any:
    found = executor.map(str, range(6))
    executor.shutdown()
    return list(found)


TABLE = [
    *(named, repeated, not_yet, shut_at_once, unequal, values_of_others, closed_early, first_error, in_order),
    *(interrupted_there, shut),
]


@pytest.mark.parametrize("operation", TABLE, ids=lambda each: each.__name__)
def test_the_same_results_as_a_process_pool(here: Here, operation: Callable[[Executor], Any]) -> None:
    with yurt.executor("local", snapshot=False) as mine, ProcessPoolExecutor(1) as pool:
        assert operation(mine) == operation(pool)


def test_in_an_event_loop(here: Here) -> None:
    async def main() -> None:
        with yurt.executor("local", snapshot=False) as executor:
            loop = asyncio.get_running_loop()
            assert await asyncio.gather(*(loop.run_in_executor(executor, abs, -each) for each in (1, 2))) == [1, 2]
            with pytest.raises(ZeroDivisionError):
                await asyncio.wrap_future(executor.submit(divmod, 1, 0))
            given_up = executor.submit(time.sleep, 60)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asyncio.wrap_future(given_up), 0.01)
            assert given_up.cancelled()

    asyncio.run(main())


FORK = """\
import os, sys, threading, yurt
executor = yurt.executor("local", snapshot=False)
assert executor.submit(abs, -1).result(60) == 1
held, go = threading.Event(), threading.Event()
def hold():
    with executor._sender.receiver._changed:
        held.set()
        go.wait()
threading.Thread(target=hold).start()
held.wait()
slow = executor.submit(pow, 2, 2)
if os.fork() == 0:
    slow.cancel()
    try:
        executor.submit(abs, -2)
    except yurt.CallError as error:
        print(error.message, flush=True)
    executor.shutdown(cancel_futures=True)
    sys.exit(0)  # with the hooks of the interpreter
assert os.wait()[1] == 0
go.set()
assert slow.result(60) == 4
print(executor.submit(abs, -3).result(60), flush=True)
"""


def test_an_executor_cannot_be_used_after_a_fork(here: Here) -> None:
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=SECONDS, check=True)
    assert done.stdout.splitlines() == [
        "the executor belongs to the parent process and cannot be used after a fork",
        "3",
    ]


@pytest.mark.parametrize("step", ["plan", "enqueue"])
def test_calls_that_are_being_submitted_are_cancelled_too(
    here: Here, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls that are not saved yet are not submitted; the sweep of others is cancelled."""
    there, go = threading.Event(), threading.Event()
    module = planning if step == "plan" else sender
    work = getattr(module, step)

    def slowly(*given: Any, **named: Any) -> Any:
        there.set()
        assert go.wait(SECONDS)
        return work(*given, **named)

    monkeypatch.setattr(module, step, slowly)
    executor = yurt.executor("local", snapshot=False)
    calls = [executor.submit(time.sleep, 60) for _each in range(3)]
    assert there.wait(SECONDS)
    executor.shutdown(wait=False, cancel_futures=True)
    go.set()
    assert all(each.cancelled() for each in calls)
    executor.shutdown()
    assert [task.state for sweep in yurt.runs() for task in sweep.tasks] == (["cancelled"] * 3 * (step == "enqueue"))


def test_a_submit_and_a_shutdown_at_the_same_time(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every accepted call gets a result, even if the executor is closed before its threads start."""
    executor = yurt.executor("local", snapshot=False)
    post, closing = executor._sender.batch.post, []

    def closes(posted: Posted) -> None:
        post(posted)
        closing.append(threading.Thread(target=executor.shutdown, kwargs={"wait": False}))
        closing[0].start()
        closing[0].join(0.3)

    monkeypatch.setattr(executor._sender.batch, "post", closes)
    assert executor.submit(abs, -4).result(SECONDS) == 4


def test_a_function_shared_by_many_calls_is_stored_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "MAX_BYTES", 1000)
    box = Batch()
    for each in range(50):
        box.post(Posted(Call(lambda _call: None), "f", bytes(bytearray(600)), b"%d" % each, {}))
    for each in range(3):
        box.post(Posted(Call(lambda _call: None), "g", b"g" * 600, b"%d" % each, {}))
    box.close()
    batches = [box.take(), box.take()]
    assert [len(batch) for batch in batches] == [50, 3] and box.take() == []
    assert len({id(posted.function) for posted in batches[0]}) == 1


@pytest.mark.parametrize("kind", [yurt.CallError, UserError])
def test_errors_can_be_pickled(kind: Any) -> None:
    import pickle

    error = kind("words", code="usage", hint="do this")
    error.task = "s1.0"
    found = pickle.loads(pickle.dumps(error))
    assert (type(found), str(found), found.code, found.hint, found.task) == (kind, "words", "usage", "do this", "s1.0")


THREADS = """\
import threading, yurt
together, wrong = threading.Barrier(8), []
def work(number):
    together.wait()
    try:
        if number % 2:
            yurt.run(["true"], context="local", snapshot=False)
        else:
            list(yurt.runs())
        if number < 2:
            with yurt.executor("local", snapshot=False) as executor:
                assert executor.submit(abs, -number).result(60) == number
    except BaseException as error:
        wrong.append(error)
threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
for each in threads:
    each.start()
for each in threads:
    each.join()
assert not wrong, wrong
"""


ANALYSED = """\
import threading, types
from msgspec import _utils
_utils.found, _utils.threading = [], threading
_utils.really = types.FunctionType(_utils.get_class_annotations.__code__, vars(_utils))
def note(obj):
    found.append((threading.current_thread(), obj))
    return really(obj)
_utils.get_class_annotations.__code__ = note.__code__
import yurt
from yurt.api import executor, run, runs
from yurt.contexts.fan_out import ready
ready()
assert _utils.found
def work():
    sweep = yurt.run(["true"], context="local", snapshot=False, grid={"a": [1, 2]})
    with yurt.executor("local", snapshot=False) as calls:
        assert calls.submit(abs, -3).result(60) == 3
    sweep.wait()
    list(yurt.runs()), sweep.logs(), yurt.get(sweep.id)
thread = threading.Thread(target=work)
thread.start()
thread.join()
late = {obj for where, obj in _utils.found if where is not threading.main_thread()}
assert not late, late
"""
"""msgspec calls get_class_annotations when it analyses a type, and crashes if two threads analyse one at once."""


def test_types_are_analysed_before_threads_use_them(here: Here) -> None:
    subprocess.run([sys.executable, "-c", ANALYSED], check=True, timeout=SECONDS)


def test_eight_threads_at_once_in_a_fresh_process(here: Here, tmp_path: Path) -> None:
    count = 20 if os.environ.get("SLOW_TESTS") else 2
    for number in range(count):
        home = {"YURT_DATA_HOME": str(tmp_path / str(number % 2))}
        done = subprocess.run(
            [sys.executable, "-c", THREADS],
            env={**os.environ, **home},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done


def test_no_submodule_has_the_name_of_a_public_function() -> None:
    """Importing a submodule `yurt.x` sets `yurt.x`, so a submodule of that name would hide the public name."""
    modules = {each.name for each in pkgutil.iter_modules(yurt.__path__)}
    assert not modules & set(yurt.__all__)
