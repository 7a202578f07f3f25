"""Which calls become one sweep, and which of their arguments are shown."""

from __future__ import annotations

import sys
import time
from concurrent.futures import as_completed

import yurt
from tests.api.conftest import Here
from yurt.api import batch, pickles
from yurt.api.future import Call
from yurt.contexts import folders
from yurt.model import calls
from yurt.store import calls as kept_calls


class Leaves:
    """Exits when unpickled, like a module that exits when it cannot be imported."""

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return sys.exit, (3,)


def test_calls_submitted_together_are_one_sweep_however_long_it_takes(here: Here) -> None:
    with yurt.executor("local", snapshot=False) as executor:
        with executor.together():
            first = executor.submit(len, "one")
            time.sleep(3 * batch.SINGLE_DELAY)
            second = executor.submit(len, "three")
            assert not first.run
        leaves = executor.submit(len, Leaves())
        assert (first.result(60), second.result(60)) == (3, 5)
        error = leaves.exception(60)
    assert isinstance(error, yurt.CallError) and error.code == "call-not-loaded" and "SystemExit" in error.message
    assert first.task.partition(".")[0] == second.task.partition(".")[0]
    with folders.store() as index:
        kept = calls.unpack(kept_calls.of(index, first.task.partition(".")[0]) or b"")
    assert len(kept.functions) == 1


def test_waiting_for_a_call_inside_the_block_submits_it(here: Here) -> None:
    with yurt.executor("local", snapshot=False) as executor, executor.together():
        assert executor.submit(len, "one").result(60) == 3
        assert executor.submit(len, 4).exception(60) is not None
        late = [executor.submit(len, "three"), executor.submit(len, "four")]
        assert {each.result() for each in as_completed(late, 60)} == {4, 5}


def test_a_function_shared_by_many_calls_counts_once() -> None:
    found = batch.Batch()
    for _each in range(3):
        large = bytes(batch.MAX_BYTES // 2)
        found.post(batch.Posted(Call(lambda _call: None), "f", large, b"1", {}))
    found.close()
    taken = found.take()
    assert len(taken) == 3 and len({id(each.function) for each in taken}) == 1
    assert found.take() == []


def test_parameters_that_start_with_an_underscore_are_not_shown() -> None:
    def call(_config: str, lr: float) -> None: ...

    assert pickles.shown(call, ("much", 0.1), {}) == {"lr": 0.1}
