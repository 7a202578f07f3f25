"""The future of a submitted function call."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock
from typing import Any


class Call(Future[Any]):
    """A `concurrent.futures.Future` for one function call.

    `run` is the id of the task that executes the call; it is empty until the call is submitted to the context.
    """

    def __init__(self, withdraw: Callable[[Call], None]) -> None:
        super().__init__()
        self.run = ""
        self._withdraw = withdraw
        self._lock = Lock()
        self._begun = False
        self._requested = False

    @property
    def awaited(self) -> bool:
        """Whether a thread waits, or has waited, for the result."""
        return self._requested or bool(self._waiters)  # the latter: as_completed() and wait()

    def result(self, timeout: float | None = None) -> Any:
        """Return what the function returned, or raise what it raised; wait at most `timeout` seconds.

        Raises `yurt.CallError` if the call finished without a result, `concurrent.futures.CancelledError` if it was
        cancelled, `TimeoutError` if it has not finished in time.
        """
        self._requested = True
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return the exception that `result` would raise, or None if the call returned a value."""
        self._requested = True
        return super().exception(timeout)

    def begin(self) -> bool:
        """Mark the call as running. Returns False if it was cancelled before."""
        with self._lock:
            if not self._begun:
                self._begun = True
                return self.set_running_or_notify_cancel()
        return not self.cancelled()

    def cancel(self) -> bool:
        """Cancel the call and its task. Returns False, and does nothing, if the call is running or has finished."""
        if not super().cancel():
            return False
        self.begin()
        self._withdraw(self)
        return True
