"""Collects function calls into batches: calls submitted at about the same time become one sweep."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from yurt.api.future import Call

SINGLE_DELAY, BURST_DELAY, MAX_DELAY = 0.1, 0.4, 2.0
"""Seconds: how long one call waits for a second one; how long several wait for the next; the limit for any call."""

AWAITED_DELAY = 0.02
"""On this machine, where a submission is quick: how long calls wait for the next once the program waits for one."""

MAX_BYTES = 64 << 20
"""Size limit of one batch."""


class Posted(msgspec.Struct, frozen=True):
    """A call to submit: its function and arguments pickled, and the arguments as parameters for display."""

    call: Call
    title: str
    function: bytes
    arguments: bytes
    shown: dict[str, Any]


class Batch:
    """A queue of calls. Any number of threads may post; one thread takes. `here`: the calls run on this machine."""

    def __init__(self, *, here: bool = False) -> None:
        self._here = here
        self._changed = threading.Condition()
        self._pending: list[Posted] = []
        self._first = self._last = 0.0
        self._holds: list[float] = []
        self._closed = False
        self._functions: dict[bytes, bytes] = {}
        self._taken: list[Posted] = []

    def post(self, posted: Posted) -> None:
        """Add a call. RuntimeError: the batch is closed."""
        with self._changed:
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._last = time.monotonic()
            if not self._pending:
                self._first = self._last
            # Store equal functions once: one with large data would take that memory for each of a thousand calls.
            function = self._functions.setdefault(posted.function, posted.function)
            self._pending.append(msgspec.structs.replace(posted, function=function))
            self._changed.notify_all()

    @contextmanager
    def hold(self, timeout: float = math.inf) -> Iterator[None]:
        """Keep calls posted inside the block in one batch, unless none is posted for `timeout` seconds.

        A call that a thread waits for is submitted without delay: that thread may be the one that posts.
        """
        with self._changed:
            self._holds.append(timeout)
        try:
            yield
        finally:
            with self._changed:
                self._holds.remove(timeout)
                self._changed.notify_all()

    def close(self) -> None:
        """Stop accepting calls."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def empty(self) -> list[Call]:
        """Remove and return all pending calls."""
        with self._changed:
            removed, self._pending = self._pending, []
            self._functions.clear()
        return [each.call for each in removed]

    def taken(self) -> list[Call]:
        """Return the calls of the last `take`; they may not be submitted yet."""
        with self._changed:
            return [each.call for each in self._taken]

    def take(self) -> list[Posted]:
        """Wait until a batch is complete and return it; an empty list once the batch is closed and empty."""
        with self._changed:
            self._taken = []
            while not self._pending or self._more_may_come():
                if not self._pending and self._closed:
                    return []
                self._changed.wait((AWAITED_DELAY if self._here else SINGLE_DELAY) if self._pending else 1.0)
            count = _batch_length(self._pending)
            self._taken, self._pending = self._pending[:count], self._pending[count:]
            if not self._pending:
                self._functions.clear()
            return self._taken

    def _more_may_come(self) -> bool:
        now = time.monotonic()
        awaited = any(each.call.awaited for each in self._pending)
        if self._here and awaited:
            soon = now < self._last + AWAITED_DELAY
        elif self._holds and not awaited:
            soon = now < self._last + max(self._holds)
        else:
            delay = BURST_DELAY if len(self._pending) > 1 else SINGLE_DELAY
            soon = now < self._last + delay and now < self._first + MAX_DELAY
        return soon and not self._closed


def _batch_length(pending: Sequence[Posted]) -> int:
    """Return how many of these calls fit into one batch. A function shared by several calls counts once."""
    size = 0
    functions: set[bytes] = set()
    for count, each in enumerate(pending):
        size += len(each.arguments) + (0 if each.function in functions else len(each.function))
        functions.add(each.function)
        if count and size > MAX_BYTES:
            return count
    return len(pending)
