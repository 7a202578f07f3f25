"""Runs the callbacks of futures in threads of their own, so that a callback cannot delay the result of another call."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures._base import LOGGER

PATIENCE = 1.0
"""Seconds after which the callbacks behind one that still runs are run by another thread: it may wait for them."""


class Callbacks:
    """The callbacks of one executor. They run one after another, in order, unless one takes longer than PATIENCE.

    A thread holds the turn while it runs callbacks. If more are queued, a second thread stands by: it takes the turn
    over when one callback has held it for too long. All threads end when the queue is empty.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queue: deque[Callable[[], None]] = deque()
        self._turn: object | None = None
        self._since = 0.0
        self._standing_by = False
        self._busy: set[int] = set()

    def run(self, work: Callable[[], None]) -> None:
        """Have the callbacks of one future run. Returns at once."""
        with self._changed:
            self._queue.append(work)
            if self._standing_by or self._stand_by():
                return
            self._queue.remove(work)
        _logged(work)

    def join(self, timeout: float | None = None) -> None:
        """Wait until all callbacks have run. Returns at once if the caller is a callback."""
        with self._changed:
            if threading.get_ident() not in self._busy:
                self._changed.wait_for(lambda: not self._queue and not self._busy, timeout)

    def _stand_by(self) -> bool:
        """Start a thread. Returns False if that is impossible, as late in the exit of the interpreter."""
        try:
            threading.Thread(target=self._work, name="yurt callbacks", daemon=True).start()
        except RuntimeError:
            return False
        self._standing_by = True
        return True

    def _work(self) -> None:
        turn = object()
        work = self._wait_for_turn(turn)
        while work is not None:
            _logged(work)
            del work
            work = self._next(turn)

    def _wait_for_turn(self, turn: object) -> Callable[[], None] | None:
        with self._changed:
            while self._queue and self._turn is not None:
                left = self._since + PATIENCE - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
            self._standing_by = False
            if not self._queue:
                return None
            self._turn = turn
            self._busy.add(threading.get_ident())
            return self._taken()

    def _next(self, turn: object) -> Callable[[], None] | None:
        """Return the next callbacks to run; None if there are none, or if another thread has taken over."""
        with self._changed:
            if self._turn is turn and self._queue:
                return self._taken()
            if self._turn is turn:
                self._turn = None
            self._busy.discard(threading.get_ident())
            self._changed.notify_all()
            return None

    def _taken(self) -> Callable[[], None]:
        work = self._queue.popleft()
        self._since = time.monotonic()
        if self._queue and not self._standing_by:
            self._stand_by()
        return work


def _logged(work: Callable[[], None]) -> None:
    try:
        work()
    except BaseException:  # the standard library catches and logs every Exception itself
        LOGGER.critical("exception in a callback", exc_info=True)
