"""The program's memory does not grow with results that it has used."""

from __future__ import annotations

import gc
import sys
import tracemalloc
import weakref
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from functools import partial
from typing import Any

import cloudpickle
import pytest

import yurt
from tests.api.conftest import CONTEXTS, Here
from yurt.testing.waiting import eventually

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 120.0
SIZE = 4 << 20
COUNT = 8


class Large:
    """A value whose end can be observed."""

    def __init__(self, number: int) -> None:
        self.number, self.content = number, bytes([number]) * SIZE


class LargeError(Exception):
    """An exception with a large value."""


def made(number: int) -> Large:
    return Large(number)


def raised(number: int) -> None:
    raise LargeError(Large(number))


class Unreadable:
    """A large result that cannot be unpickled."""

    def __reduce__(self) -> Any:
        return refuse, (bytes(SIZE),)


def refuse(_content: bytes) -> None:
    raise ValueError("words of the class")


def unreadable(_number: int) -> Unreadable:
    return Unreadable()


def mapped(executor: Executor) -> Iterator[Large]:
    yield from executor.map(made, range(COUNT), timeout=SECONDS)


def in_chunks(executor: Executor) -> Iterator[Large]:
    yield from executor.map(made, range(COUNT), timeout=SECONDS, chunksize=4)


def completed(executor: Executor) -> Iterator[Large]:
    calls = {executor.submit(made, number) for number in range(COUNT)}
    done = as_completed(set(calls), timeout=SECONDS)
    while calls:
        yield _taken(next(done), calls)


def _taken(call: Future[Large], calls: set[Future[Large]]) -> Large:
    calls.remove(call)
    return call.result()


def results(executor: Executor) -> Iterator[Large]:
    calls = [executor.submit(made, number) for number in range(COUNT)]
    while calls:
        yield calls.pop().result(SECONDS)


def errors(executor: Executor) -> Iterator[Large]:
    calls = [executor.submit(raised, number) for number in range(COUNT)]
    while calls:
        yield _error_of(calls.pop())


def _error_of(call: Future[None]) -> Large:
    try:
        call.result(SECONDS)
    except LargeError as error:
        found: Large = error.args[0]
        return found
    finally:
        del call
    raise AssertionError("no error")


@pytest.fixture
def no_collector() -> Iterator[None]:
    """References are counted, and cycles are not collected."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("context", CONTEXTS[:2])
@pytest.mark.parametrize("way", [mapped, in_chunks, completed, results, errors], ids=lambda each: each.__name__)
@pytest.mark.slow("errors-alpha", "completed-alpha", "in_chunks-alpha", "mapped-alpha")
def test_used_results_are_released(here: Here, context: str, way: Any) -> None:
    with yurt.executor(context, snapshot=False, max_parallel=4) as executor:
        used = []
        for value in way(executor):
            used.append(weakref.ref(value))
            del value
            eventually(lambda: not any(each() is not None for each in used), seconds=20)
        assert len(used) == COUNT


def _less_than(size: int) -> bool:
    return tracemalloc.get_traced_memory()[0] < size


@pytest.mark.usefixtures("no_collector")
def test_nothing_as_large_as_a_result_stays_in_memory(here: Here) -> None:
    """Neither values nor pickles; a process pool keeps none either."""
    grown = {}
    tracemalloc.start()
    try:
        for name, each in (("pool", ProcessPoolExecutor(1)), ("yurt", yurt.executor("local", snapshot=False))):
            with each as executor:
                executor.submit(abs, -1).result(SECONDS)
                before = tracemalloc.get_traced_memory()[0]
                for way in (mapped, in_chunks, completed) if name == "yurt" else (mapped,):
                    assert sum(value.content[0] for value in way(executor)) == sum(range(COUNT))
                    eventually(partial(_less_than, before + SIZE), seconds=20)
                grown[name] = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert max(grown.values()) < SIZE, grown


@pytest.mark.usefixtures("no_collector")
def test_an_error_does_not_refer_to_the_pickle(here: Here) -> None:
    with yurt.executor("local", snapshot=False) as executor:
        assert executor.submit(abs, -1).result(SECONDS) == 1
        tracemalloc.start()
        try:
            error = executor.submit(unreadable, 1).exception(SECONDS)
            assert isinstance(error, yurt.CallError) and error.code == "result-not-sent"
            assert isinstance(error.__cause__, ValueError) and "in refuse" in error.__cause__.__notes__[0]
            eventually(lambda: tracemalloc.get_traced_memory()[0] < SIZE // 2, seconds=20)
        finally:
            tracemalloc.stop()
