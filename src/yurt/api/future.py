"""The future of a submitted function call."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from yurt.api.runs import Run

PART = 1.0
"""Seconds: the longest uninterrupted part of a wait for a result."""


def _immediately(work: Callable[[], None]) -> None:
    work()


class Call(Future[Any]):
    """A `concurrent.futures.Future` for one function call.

    `task` is the id of the task that executes the call; it is empty until the call is submitted to the context.
    Callbacks run one at a time in a thread of their own, so a callback may wait for other calls. While one callback
    takes longer than a second, others run in another thread.
    """

    def __init__(
        self,
        withdraw: Callable[[Call], None],
        run_callbacks: Callable[[Callable[[], None]], None] = _immediately,
    ) -> None:
        super().__init__()
        self.task = ""
        self._withdraw, self._run_callbacks = withdraw, run_callbacks
        self._lock = Lock()
        self._begun = self._withdrawn = False
        self._requested = False

    @property
    def run(self) -> Run | None:
        """The task that executes the call, as a `yurt.Run`; None until the call is submitted to the context.

        Its state is the one that the executor last received. Raises `yurt.errors.NotFoundError` if the task is no
        longer in the index of this machine.
        """
        if not self.task:
            return None
        from yurt.api.runs import get

        return get(self.task, refresh=False)

    def __repr__(self) -> str:
        state = super().__repr__().partition(" state=")[2].rstrip(">")
        return f"<yurt call {self.task or '(not submitted)'}: {state}>"

    @property
    def awaited(self) -> bool:
        """Whether a thread waits, or has waited, for the result."""
        return self._requested or bool(self._waiters)  # the latter: as_completed() and wait()

    def result(self, timeout: float | None = None) -> Any:
        """Return what the function returned, or raise what it raised; wait at most `timeout` seconds.

        Raises `yurt.CallError` if the call finished without a result, `concurrent.futures.CancelledError` if it was
        cancelled, `TimeoutError` if it has not finished in time.
        """
        timeout = self._wait(timeout)
        try:
            return super().result(timeout)
        finally:
            del self  # the traceback of the exception would refer to the future, which refers to the exception

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return the exception that `result` would raise, or None if the call returned a value."""
        return super().exception(self._wait(timeout))

    def _wait(self, timeout: float | None) -> float | None:
        """Wait until the call is done, except for the last part of `timeout`. Returns that part.

        The interpreter may overlook Ctrl-C at the beginning of a wait; in a long one, nobody would see it.
        """
        self._requested = True
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self.done():
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= PART:
                return left
            with self._condition:
                if not self.done():
                    self._condition.wait(PART)
        return timeout

    def begin(self) -> bool:
        """Mark the call as running. Returns False if it was cancelled before."""
        with self._condition:  # the only lock: Ctrl-C may leave it to the main thread for ever
            if not self._begun:
                self._begun = True
                return self.set_running_or_notify_cancel()
        return not self.cancelled()

    def cancel(self) -> bool:
        """Cancel the call and its task. Returns False, and does nothing, if the call is running or has finished."""
        return self._cancel(_immediately)

    def _cancel(self, run_callbacks: Callable[[Callable[[], None]], None]) -> bool:
        if not super().cancel():
            return False
        with self._lock:
            first, self._withdrawn = not self._withdrawn, True
        if first:
            self.begin()
            self._withdraw(self)
            if self._done_callbacks:  # type: ignore[attr-defined]
                run_callbacks(super()._invoke_callbacks)  # type: ignore[misc]
        return True

    def _invoke_callbacks(self) -> None:
        """Run the callbacks of a call that is done; `_cancel` runs those of a cancelled call."""
        if self._done_callbacks and not self.cancelled():  # type: ignore[attr-defined]
            self._run_callbacks(super()._invoke_callbacks)  # type: ignore[misc]

    def __reduce__(self) -> NoReturn:
        raise TypeError("a future cannot be pickled; pass the value of its result() instead")


def settle(call: Call, value: Any = None, error: BaseException | None = None) -> None:
    """Set the result or the exception of a call, unless it is done."""
    with suppress(InvalidStateError):  # another thread was faster
        if call.done() or not call.begin():
            return
        if error is not None:
            call.set_exception(error)
        else:
            call.set_result(value)


def fail(call: Call, error: BaseException) -> None:
    """Set the exception of a call that is not running, and cancel its task."""
    with call._condition:
        if call._begun:
            return
    settle(call, error=error)
    call._withdrawn = True
    call._withdraw(call)


def drop(call: Call) -> bool:
    """Cancel a call on behalf of the executor: its callbacks do not run in this thread."""
    return call._cancel(call._run_callbacks)


def has_raised(call: Call, error: BaseException) -> bool:
    """Whether this is the exception of the call."""
    return call._exception is error


def is_withdrawn(call: Call) -> bool:
    """Whether a call was cancelled. Does not wait for its lock."""
    return call._withdrawn
