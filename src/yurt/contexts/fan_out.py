"""Runs work on several items in parallel."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from threading import Lock
from typing import TypeVar

import msgspec

from yurt.clocks import clocks
from yurt.config import contexts, facts
from yurt.errors import YurtError
from yurt.model.calls import CallResult
from yurt.model.context import LOCAL, Context
from yurt.model.run import Plan, Run, Status
from yurt.model.state import Ending
from yurt.model.verdict import SweepVerdict, Verdict
from yurt.store.one_set import Rest
from yurt.store.runs import Sets
from yurt.store.tasks import SetsOfTasks

Item = TypeVar("Item")


_lock = Lock()

TYPES = (Context, facts.Kept, Run, Status, Plan, Ending, Verdict, SweepVerdict, CallResult, Sets, SetsOfTasks, Rest)
"""What threads decode."""


def ready() -> None:
    """Prepare msgspec types before threads use them.

    msgspec analyses a type when it first decodes one, and crashes if two threads do that at the same time.
    """
    with _lock:
        with contextlib.suppress(YurtError):
            clocks()  # if YURT_CLOCKS changes some
        for _pass in ("writes the cache of the file", "reads the cache"):
            with contextlib.suppress(YurtError):
                contexts.named(LOCAL.name)
        for kind in TYPES:
            msgspec.json.Decoder(kind)


def side_by_side(work: Callable[[Item], object], items: Sequence[Item], most: int = 8) -> None:
    """Call `work` for each item, up to `most` in parallel; the first error is raised when all are done."""
    from concurrent.futures import ThreadPoolExecutor
    from contextvars import copy_context

    ready()
    with ThreadPoolExecutor(min(len(items), most)) as pool:
        # Threads have the limits of time of the caller; see clocks.ending_by.
        calls = [(copy_context(), each) for each in items]
        list(pool.map(lambda call: call[0].run(work, call[1]), calls))
