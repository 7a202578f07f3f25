"""Progress events of long operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from yurt.clocks import clocks


class Event(msgspec.Struct, frozen=True):
    """A step is in progress. `done` of `total` steps, or bytes, are complete; total 0 means unknown."""

    text: str
    done: int = 0
    total: int = 0
    bytes: bool = False
    """Whether `done` and `total` are bytes of a transfer."""


Watch = Callable[[Event], None]


def unwatched(_event: Event) -> None:
    """Ignore the event: the watcher of an operation without an observer."""


class Rate:
    """The rate of one transfer, from its events: bytes per second over the last few seconds."""

    WINDOW = 5.0

    def __init__(self) -> None:
        self._seen: list[tuple[float, int]] = []
        self._text = ""

    def line(self, event: Event, now: float) -> str:
        """Return the event as text: `uploading: 3.1 of 12.0 MB, 2.0 MB/s, 5 s left`."""
        if event.text != self._text or (self._seen and event.done < self._seen[-1][1]):
            self._text, self._seen = event.text, []
        self._seen = [*(each for each in self._seen if now - each[0] <= self.WINDOW), (now, event.done)]
        (since, first), rate = self._seen[0], 0.0
        if now - since >= 0.2:  # before that, it would be the rate into local buffers
            rate = (event.done - first) / (now - since)
        text = f"{event.text}: {_amount(event.done, event.total)}"
        if rate:
            text += f", {rate / 1e6:.1f} MB/s" if rate >= 1e5 else f", {rate / 1e3:.1f} kB/s"
        if rate and event.total:
            text += f", {duration(max(0, event.total - event.done) / rate)} left"
        return text


UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def _amount(done: int, total: int) -> str:
    """Return bytes, and in total if that is known, in one unit: `3.1 of 12.0 MB`."""
    for size, unit in UNITS:
        if max(done, total) >= size:
            return f"{done / size:.1f} of {total / size:.1f} {unit}" if total else f"{done / size:.1f} {unit}"
    return f"{done} of {total} bytes" if total else f"{done} bytes"


def duration(seconds: float) -> str:
    """Return a rough duration: `45 s`, `4 min`, `2.5 h`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


_listeners: list[Callable[[str], None]] = []


def on_slow(listener: Callable[[str], None] | None) -> None:
    """Let a function receive the sentences about sites that respond slowly, from all threads; None: nobody does."""
    _listeners[:] = [] if listener is None else [listener]


def report_slow(text: str) -> None:
    """Report that an operation takes long. Does nothing if nobody listens, as in a program that uses the API."""
    for each in _listeners:
        each(text)


def waiting(what: str, limit: float | None = None) -> str:
    """Return the sentence about a wait: for what, and for how many seconds at most."""
    return f"waiting for {what}" + ("" if limit is None else f"; giving up after {limit:.0f} s")


@contextmanager
def patience(what: str, limit: float | None = None) -> Iterator[None]:
    """Report what the block waits for, once, if it takes long. `limit`: after how many seconds it gives up."""
    if limit is not None and limit <= clocks().slow:  # it ends before anybody has to know
        yield
        return
    import threading  # not needed by most commands

    reporter = threading.Timer(clocks().slow, lambda: report_slow(waiting(what, limit)))
    reporter.daemon = True
    reporter.start()
    try:
        yield
    finally:
        reporter.cancel()


@contextmanager
def without_slow() -> Iterator[None]:
    """Drop the sentences about sites that respond slowly: the caller reports a lost connection itself, once."""
    before = _listeners[:]
    _listeners.clear()
    try:
        yield
    finally:
        _listeners[:] = before
