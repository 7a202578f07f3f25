"""Calls that are to go out, gathered into batches: what comes at about the same time goes out together."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from yurt.api.future import Call

ALONE, QUIET, LONGEST = 0.1, 0.4, 2.0
"""Seconds that a call waits for others; that several wait for more of them after the last; that any waits at most."""

BATCH = 64 << 20
"""Bytes that go out together."""


class Posted(msgspec.Struct, frozen=True):
    """A call that is to go out: its function and its arguments pickled, and as people are shown them."""

    call: Call
    title: str
    function: bytes
    arguments: bytes
    shown: dict[str, Any]


class Batch:
    """For any number of threads that post, and one that empties it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._there: list[Posted] = []
        self._first = self._last = 0.0
        self._holders: list[float] = []
        self._closed = False
        self._functions: dict[bytes, bytes] = {}
        self._taken: list[Posted] = []

    def post(self, posted: Posted) -> None:
        """RuntimeError: it is closed."""
        with self._changed:
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._last = time.monotonic()
            if not self._there:
                self._first = self._last
            # Equal functions are kept once: with large data in them, a thousand calls need its room once.
            function = self._functions.setdefault(posted.function, posted.function)
            self._there.append(msgspec.structs.replace(posted, function=function))
            self._changed.notify_all()

    @contextmanager
    def held(self, most: float = math.inf) -> Iterator[None]:
        """What is posted meanwhile goes out together, however long it takes; but not if nothing comes for `most`.

        What somebody waits for goes out as ever: who posts may be the one who waits.
        """
        with self._changed:
            self._holders.append(most)
        try:
            yield
        finally:
            with self._changed:
                self._holders.remove(most)
                self._changed.notify_all()

    def close(self) -> None:
        """Nothing more is taken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def empty(self) -> list[Call]:
        """Take out all that is there."""
        with self._changed:
            gone, self._there = self._there, []
            self._functions.clear()
        return [each.call for each in gone]

    def taken(self) -> list[Call]:
        """Calls that were taken out last, and may be about to go out."""
        with self._changed:
            return [each.call for each in self._taken]

    def take(self) -> list[Posted]:
        """The calls that go out next, when it is time; none if nothing more will come."""
        with self._changed:
            self._taken = []
            while not self._there or self._more_may_come():
                if not self._there and self._over():
                    return []
                self._changed.wait(ALONE if self._there else 1.0)
            count = _fitting(self._there)
            self._taken, self._there = self._there[:count], self._there[count:]
            if not self._there:
                self._functions.clear()
            return self._taken

    def _more_may_come(self) -> bool:
        now = time.monotonic()
        if self._holders and not any(each.call.awaited for each in self._there):
            soon = now < self._last + max(self._holders)
        else:
            quiet = QUIET if len(self._there) > 1 else ALONE
            soon = now < self._last + quiet and now < self._first + LONGEST
        return soon and not self._over()

    def _over(self) -> bool:
        """As in the standard library, the end of the program closes it too."""
        return self._closed or not threading.main_thread().is_alive()


def _fitting(there: Sequence[Posted]) -> int:
    """How many of these calls go out together; a function that several of them call travels once."""
    size = 0
    functions: set[bytes] = set()
    for count, each in enumerate(there):
        size += len(each.arguments) + (0 if each.function in functions else len(each.function))
        functions.add(each.function)
        if count and size > BATCH:
            return count
    return len(there)
