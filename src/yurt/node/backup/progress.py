"""Reports progress to a caller, at most five times a second."""

import time
from typing import Callable, Optional

OnProgress = Optional[Callable[[str, int, int], None]]
INTERVAL = 0.2


class Progress:
    """The progress of one phase, in bytes. The first and the last report always reach the caller."""

    def __init__(self, report: OnProgress, phase: str, total: int) -> None:
        self.report = report
        self.phase = phase
        self.total = total
        self.done = 0
        self._last = time.monotonic()
        if report is not None:
            report(phase, 0, total)

    def add(self, size: int) -> None:
        self.reach(self.done + size)

    def reach(self, done: int) -> None:
        self.done = done
        now = time.monotonic()
        if self.report is not None and now - self._last >= INTERVAL:
            self._last = now
            self.report(self.phase, min(self.done, self.total), self.total)

    def end(self) -> None:
        if self.report is not None:
            self.report(self.phase, self.total, self.total)
