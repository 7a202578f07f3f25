"""When the next backup, warning and look at the time limit are due. Pure: the caller says what time it is."""

from typing import Dict, List, Optional, Tuple

WARNINGS = (1800.0, 600.0)
"""How long before the end the terminals are warned."""

EARLY, LAST = 300.0, 60.0
"""How long before the end the workspace is saved; the last save is earlier if saves are slow."""

LOOK = 240.0
LAST_LOOK = 120.0


class Schedule:
    """The clock of a dev node. All times are seconds since the epoch, given by the caller."""

    def __init__(self, now: float, interval: float, retry: float) -> None:
        self.interval, self.retry = interval, retry
        self.end: Optional[float] = None
        self.last_save = now
        self.last_seconds = 0.0
        self.failures = 0
        self._failed_at = now
        self._looked_at = now
        self._warned: Dict[float, bool] = {}

    def saved(self, began: float, seconds: float) -> None:
        """Record a save that began at a time, or a look that found nothing to save."""
        self.last_save, self.last_seconds, self.failures = began, seconds, 0

    def failed(self, now: float) -> None:
        self.failures, self._failed_at = self.failures + 1, now

    def looked(self, now: float, end: Optional[float]) -> None:
        """Record the end of the job as read now; None if it has no time limit. Warnings that lie ahead are armed."""
        self._looked_at = now
        first, self.end = self.end is None, end
        if end is None:
            return
        for before in WARNINGS:
            if end - before > now:
                self._warned[before] = False
            elif first:
                self._warned[before] = True  # it started with less time than that: no news

    def save_marks(self) -> List[float]:
        """Return the times before the end at which a save is due."""
        if self.end is None:
            return []
        return sorted((self.end - EARLY, self.end - max(LAST, 30 + 3 * self.last_seconds)))

    def next_save(self) -> Tuple[float, str]:
        """Return when the next save is due, and its reason: `interval` or `limit`."""
        times = [(self.last_save + self.interval, "interval")]
        times += [(mark, "limit") for mark in self.save_marks() if mark > self.last_save]
        due, reason = min(times)
        if self.failures:
            pause = min(self.retry * 2 ** (self.failures - 1), max(self.interval, self.retry))
            if self.end is not None and self._failed_at > self.end - EARLY:
                pause = min(pause, 15.0)
            due = self._failed_at + pause
        return due, reason

    def shown_next(self, now: float) -> float:
        """Return when the next save is due, for the user: now if it is overdue."""
        return max(now, self.next_save()[0])

    def next_look(self) -> float:
        """Return when the time limit should be read again."""
        due = self._looked_at + LOOK
        if self.end is not None and self._looked_at < self.end - LAST_LOOK:
            due = min(due, self.end - LAST_LOOK)
        return due

    def warning(self, now: float) -> Optional[int]:
        """Return the minutes left if the terminals should be told now; at most once for each warning."""
        if self.end is None:
            return None
        due = [before for before in WARNINGS if now >= self.end - before and not self._warned.get(before, True)]
        for before in due:
            self._warned[before] = True
        return max(0, round((self.end - now) / 60)) if due else None
