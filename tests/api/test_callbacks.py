"""Callbacks of futures: they may wait for other calls, and follow the rules of the standard library."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from concurrent.futures import Future
from typing import Any

import cloudpickle
import pytest

import yurt
from tests.api.conftest import CONTEXTS, Here
from yurt.api import callbacks as running
from yurt.api.callbacks import Callbacks
from yurt.api.future import Call

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 60.0


def after(seconds: float, value: int) -> int:
    time.sleep(seconds)
    return value


@pytest.mark.parametrize("context", CONTEXTS[:2])
def test_a_callback_waits_for_other_calls(here: Here, context: str) -> None:
    """For one that is submitted already, for a new one, and for a map."""
    found: list[Any] = []
    with yurt.executor(context, snapshot=False) as executor:
        first, other = executor.submit(after, 0, 1), executor.submit(after, 2, 2)
        done = threading.Event()

        def waits(call: Future[Any]) -> None:
            found.append(call.result())
            found.append(other.result(SECONDS))
            found.append(executor.submit(abs, -3).result(SECONDS))
            found.append(list(executor.map(abs, [-4, -5], timeout=SECONDS)))
            done.set()

        first.add_done_callback(waits)
        assert other.result(SECONDS) == 2 and done.wait(SECONDS)
    assert found == [1, 2, 3, [4, 5]]


@pytest.mark.parametrize("wait", [True, False])
def test_a_callback_shuts_the_executor_down(here: Here, wait: bool) -> None:
    executor = yurt.executor("local", snapshot=False)
    done = threading.Event()

    def shuts(_call: Future[Any]) -> None:
        executor.shutdown(wait=wait)
        done.set()

    calls = [executor.submit(after, seconds, 1) for seconds in (0, 1)]
    calls[0].add_done_callback(shuts)
    assert done.wait(SECONDS) and calls[1].result(SECONDS) == 1
    assert calls[1].done() if wait else True
    executor.shutdown()
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(abs, 1)


def test_a_callback_waits_for_an_event_loop_that_waits_for_another_callback(here: Here) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        with yurt.executor("local", snapshot=False) as executor:
            first, other = executor.submit(after, 0, 1), executor.submit(after, 0, 2)
            told = loop.create_future()

            async def waiting() -> Any:
                return await asyncio.wrap_future(other)

            def waits(_call: Future[Any]) -> None:
                value = asyncio.run_coroutine_threadsafe(waiting(), loop).result(SECONDS)
                loop.call_soon_threadsafe(told.set_result, value)

            first.add_done_callback(waits)
            assert await asyncio.wait_for(told, SECONDS) == 2

    asyncio.run(main())


def rules(future: Future[Any], finish: Any, caplog: pytest.LogCaptureFixture) -> Any:
    """Callbacks run in the order they were added, each once, in spite of exceptions; a late one runs at once."""
    called: list[Any] = []
    ended = threading.Event()

    def fails(_future: Any) -> None:
        called.append("fails")
        raise ValueError("words of the callback")

    future.add_done_callback(lambda given: called.append((1, given is future)))
    future.add_done_callback(fails)
    future.add_done_callback(lambda _future: called.append(2))
    future.add_done_callback(lambda _future: ended.set())
    finish()
    assert ended.wait(SECONDS)
    future.add_done_callback(lambda _future: called.append(threading.current_thread() is threading.main_thread()))
    future.add_done_callback(fails)
    logged = [(each.name, each.levelno, "exception calling callback" in each.message) for each in caplog.records]
    assert "words of the callback" in caplog.text
    caplog.clear()
    return called, logged


@pytest.mark.parametrize("how", ["result", "error", "cancel"])
def test_the_rules_of_the_standard_library(how: str, caplog: pytest.LogCaptureFixture) -> None:
    def ends(future: Future[Any]) -> None:
        if how == "result":
            future.set_result(1)
        elif how == "error":
            future.set_exception(KeyError())
        else:
            future.cancel()

    mine, theirs = Call(lambda _call: None, Callbacks().run), Future[Any]()
    with caplog.at_level(logging.ERROR, "concurrent.futures"):
        assert rules(mine, lambda: ends(mine), caplog) == rules(theirs, lambda: ends(theirs), caplog)


def test_cancel_returns_after_the_callbacks() -> None:
    """As in the standard library, they run in the thread that cancels, each once."""
    call, called = Call(lambda _call: None, Callbacks().run), []
    call.add_done_callback(lambda _call: called.append(threading.get_ident()))
    assert call.cancel() and call.cancel() and called == [threading.get_ident()]


def test_callbacks_run_one_at_a_time_unless_one_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "PATIENCE", SECONDS)
    box, active, most, order = Callbacks(), 0, 0, []

    def work(number: int) -> None:
        nonlocal active, most
        active += 1
        most = max(most, active)
        time.sleep(0.001)
        order.append(number)
        active -= 1

    for number in range(200):
        box.run(lambda number=number: work(number))  # type: ignore[misc]
    box.join()
    assert most == 1 and order == list(range(200))
    monkeypatch.setattr(running, "PATIENCE", 0.05)
    go = threading.Event()

    def waits() -> None:
        go.wait(SECONDS)

    for _each in range(3):
        box.run(waits)
    box.run(go.set)
    box.join(SECONDS)
    assert go.is_set()
    deadline = time.monotonic() + SECONDS
    while any(each.name == "yurt callbacks" for each in threading.enumerate()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(each.name == "yurt callbacks" for each in threading.enumerate())


def test_a_callback_that_exits_does_not_stop_the_others(here: Here) -> None:
    called = threading.Event()
    with yurt.executor("local", snapshot=False) as executor:
        call = executor.submit(after, 0, 1)
        call.add_done_callback(lambda _call: sys.exit(3))
        assert call.result(SECONDS) == 1
        other = executor.submit(after, 0, 2)
        other.add_done_callback(lambda _call: called.set())
        assert other.result(SECONDS) == 2 and called.wait(SECONDS)


def test_futures_and_executors_say_that_they_cannot_be_pickled(here: Here) -> None:
    with yurt.executor("local", snapshot=False) as executor:
        call = executor.submit(after, 0, 1)
        errors = [executor.submit(lambda: call).exception(SECONDS), executor.submit(print, executor).exception(SECONDS)]
    assert "pass the value of its result() instead" in str(errors[0])
    assert "create one inside the function" in str(errors[1])
