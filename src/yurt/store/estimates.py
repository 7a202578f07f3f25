"""When runs were expected to start, at their submission."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from yurt.model.where import Estimate


class Estimates:
    """The part of the index that records expected starts."""

    _db: sqlite3.Connection

    def note_estimate(self, context: str, made: Estimate) -> None:
        row = (made.run, context, made.partition, made.at, made.seconds, made.low, made.high, made.clock)
        self._db.execute("INSERT OR REPLACE INTO estimates VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)

    def note_held(self, context: str, runs: list[str], at: float) -> None:
        """Record that the user delayed runs: their waits say nothing about the queue."""
        rows = [(run, context, at) for run in runs]
        self._db.executemany("INSERT OR REPLACE INTO estimates VALUES (?, ?, '', ?, NULL, NULL, NULL, 0)", rows)

    def estimates(self, context: str, limit: int) -> list[Estimate]:
        """Return the newest estimates of a context, newest first."""
        from yurt.model.where import Estimate

        query = (
            "SELECT run, partition, at, seconds, low, high, clock FROM estimates WHERE context = ?"
            " AND seconds IS NOT NULL ORDER BY at DESC LIMIT ?"
        )
        names = ("run", "partition", "at", "seconds", "low", "high", "clock")
        return [Estimate(**dict(zip(names, row, strict=True))) for row in self._db.execute(query, (context, limit))]

    def delayed_runs(self, context: str) -> set[str]:
        """Return the runs of a context that the user delayed."""
        query = "SELECT run FROM estimates WHERE context = ? AND seconds IS NULL"
        return {row[0] for row in self._db.execute(query, (context,))}
