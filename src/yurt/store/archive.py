"""The local copies of logs and metrics of finished runs, and the runs whose copies are still due."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager

import msgspec

from yurt.model.run import Status
from yurt.store.races import HIDDEN

PATIENCE = 7 * 86400.0
"""Seconds after which yurt stops trying to save the logs of a finished run."""


class Mirrored(msgspec.Struct, frozen=True, kw_only=True):
    """The local copy of a finished run: the ends of its logs, its metrics, its exit.json; and the file sizes."""

    at: float
    out: bytes = b""
    err: bytes = b""
    metrics: bytes = b""
    """The complete file, or its first and last bytes."""
    out_size: int = 0
    err_size: int = 0
    metrics_size: int = 0
    ending: bytes = b""
    """exit.json."""


class Mirror:
    """The part of the index that remains after run folders are removed."""

    _db: sqlite3.Connection

    def _transaction(self, *, durable: bool = False) -> AbstractContextManager[None]:
        raise NotImplementedError

    def _to_mirror(self, run: str, status: Status) -> None:
        """Mark the logs of a finished run to be saved; a run that was never submitted has none."""
        if status.final and status.attempts:
            self._db.execute(
                "INSERT OR REPLACE INTO to_mirror SELECT id, context, ?, 0, 0 FROM runs WHERE id = ?"
                f" AND id NOT IN ({HIDDEN})",  # of a race, its winner is saved under the name of the race
                (time.time(), run),
            )

    def to_mirror(self, context: str, now: float) -> list[str]:
        """Return the finished runs whose logs are due to be saved, longest due first."""
        self._db.execute("DELETE FROM to_mirror WHERE since < ?", (now - PATIENCE,))
        query = "SELECT run FROM to_mirror WHERE context = ? AND due <= ? ORDER BY due, since"
        return [row[0] for row in self._db.execute(query, (context, now))]

    def contexts_to_mirror(self, now: float) -> list[str]:
        return [row[0] for row in self._db.execute("SELECT DISTINCT context FROM to_mirror WHERE due <= ?", (now,))]

    def mirror_later(self, runs: Iterable[str], now: float) -> None:
        """Postpone these runs after a failure: by a minute, then by growing intervals."""
        with self._transaction():
            query = (
                "UPDATE to_mirror SET due = ? + min(60 << (2 * min(tries, 8)), 86400), tries = tries + 1 WHERE run = ?"
            )
            self._db.executemany(query, ((now, run) for run in runs))

    def keep(self, mirrored: Mapping[str, Mirrored]) -> None:
        """Save the local copies of runs."""
        import zlib

        with self._transaction():
            for run, each in mirrored.items():
                texts = [zlib.compress(text, 6) for text in (each.out, each.err, each.metrics)]
                sizes = (each.out_size, each.err_size, each.metrics_size)
                row = (run, each.at, *sizes, *texts, each.ending)
                self._db.execute("INSERT OR REPLACE INTO mirror VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
                self._db.execute("DELETE FROM to_mirror WHERE run = ?", (run,))

    def kept(self, run: str) -> Mirrored | None:
        """Return the local copy of a run, even if its folder is gone; None if there is none."""
        import zlib

        row = self._db.execute("SELECT * FROM mirror WHERE run = ?", (run,)).fetchone()
        if row is None:
            return None
        _run, at, out_size, err_size, metrics_size, *texts, ending = row
        out, err, metrics = (zlib.decompress(text) for text in texts)
        return Mirrored(
            at=at,
            out=out,
            err=err,
            metrics=metrics,
            out_size=out_size,
            err_size=err_size,
            metrics_size=metrics_size,
            ending=ending,
        )

    def is_kept(self, run: str) -> bool:
        """Return whether the local copy of a run is complete."""
        query = "SELECT 1 FROM mirror WHERE run = ?1 AND run NOT IN (SELECT run FROM to_mirror WHERE run = ?1)"
        return self._db.execute(query, (run,)).fetchone() is not None

    def all_kept(self) -> set[str]:
        """Return all runs whose local copy is complete."""
        query = "SELECT run FROM mirror WHERE run NOT IN (SELECT run FROM to_mirror)"
        return {row[0] for row in self._db.execute(query)}

    def note_parts(self, run: str, at: float, parts: bytes) -> None:
        """Record the measured contents of a run's folder."""
        self._db.execute("INSERT OR REPLACE INTO parts VALUES (?, ?, ?)", (run, at, parts))

    def parts(self, run: str) -> tuple[float, bytes] | None:
        """Return when a run's folder was last measured, and the result."""
        row = self._db.execute("SELECT at, parts FROM parts WHERE run = ?", (run,)).fetchone()
        return None if row is None else (row[0], row[1])
