"""A call on its way: a future of the standard library's that knows its run."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock
from typing import Any


class Call(Future[Any]):
    """What `Executor.submit` returns. `run` is the id of its task once it has gone out; until then it is empty."""

    def __init__(self, withdraw: Callable[[Call], None]) -> None:
        super().__init__()
        self.run = ""
        self._withdraw = withdraw
        self._alone = Lock()
        self._begun = False
        self._asked_for = False

    @property
    def awaited(self) -> bool:
        """Whether somebody waits for it, or has."""
        return self._asked_for or bool(self._waiters)  # the latter: as_completed() and wait()

    def result(self, timeout: float | None = None) -> Any:
        self._asked_for = True
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._asked_for = True
        return super().exception(timeout)

    def begin(self) -> bool:
        """It runs now, or has run; False if it was cancelled before."""
        with self._alone:
            if not self._begun:
                self._begun = True
                return self.set_running_or_notify_cancel()
        return not self.cancelled()

    def cancel(self) -> bool:
        """Cancel it, unless it is known to run: then its task never starts, or is ended."""
        if not super().cancel():
            return False
        self.begin()
        self._withdraw(self)
        return True
