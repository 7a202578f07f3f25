"""Work on several things side by side."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TypeVar

import msgspec

from yurt.config import contexts, facts
from yurt.errors import YurtError
from yurt.model.calls import CallResult
from yurt.model.context import LOCAL
from yurt.model.run import Plan, Run, Status
from yurt.model.state import Ending
from yurt.model.verdict import SweepVerdict, Verdict

Item = TypeVar("Item")


_alone = Lock()


def ready() -> None:
    """Before threads read what yurt keeps. msgspec works a type out when it first reads one, and crashes where two
    threads are at that at once."""
    with _alone:
        for _try in ("writes what it makes of the file", "reads that"):
            with contextlib.suppress(YurtError):
                contexts.named(LOCAL.name)
        for kind in (facts.Kept, Run, Status, Plan, Ending, Verdict, SweepVerdict, CallResult):
            msgspec.json.Decoder(kind)


def side_by_side(work: Callable[[Item], object], items: Sequence[Item], most: int = 8) -> None:
    """Do the same to each item, several at a time; the first error is raised when all are done."""
    ready()
    with ThreadPoolExecutor(min(len(items), most)) as pool:
        list(pool.map(work, items))
