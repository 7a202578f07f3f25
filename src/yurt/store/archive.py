"""What is kept on this machine of runs that ended, and which of it is still to be brought here."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager

import msgspec

from yurt.model.run import Status

PATIENCE = 7 * 86400.0
"""Seconds after which what an ended run left is no longer asked for, if it did not come."""


class Mirrored(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept here of an ended run: the last bytes of its logs, its metrics, its end; and how large files were."""

    at: float
    out: bytes = b""
    err: bytes = b""
    metrics: bytes = b""
    """All of it, or its first and last bytes."""
    out_size: int = 0
    err_size: int = 0
    metrics_size: int = 0
    ending: bytes = b""
    """exit.json."""


class Mirror:
    """The part of the index that outlives run folders."""

    _db: sqlite3.Connection

    def _transaction(self, *, durable: bool = False) -> AbstractContextManager[None]:
        raise NotImplementedError

    def _to_mirror(self, run: str, status: Status) -> None:
        """What an ended run left on its site is to be brought here; of one that never went out there is nothing."""
        if status.final and status.attempts:
            self._db.execute(
                "INSERT OR REPLACE INTO to_mirror SELECT id, context, ?, 0, 0 FROM runs WHERE id = ?",
                (time.time(), run),
            )

    def to_mirror(self, context: str, now: float) -> list[str]:
        """Ended runs of which is to be brought here now what they left, those that wait longest first."""
        self._db.execute("DELETE FROM to_mirror WHERE since < ?", (now - PATIENCE,))
        query = "SELECT run FROM to_mirror WHERE context = ? AND due <= ? ORDER BY due, since"
        return [row[0] for row in self._db.execute(query, (context, now))]

    def contexts_to_mirror(self, now: float) -> list[str]:
        return [row[0] for row in self._db.execute("SELECT DISTINCT context FROM to_mirror WHERE due <= ?", (now,))]

    def mirror_later(self, runs: Iterable[str], now: float) -> None:
        """It did not work now: try again after a minute, then ever more seldom."""
        with self._transaction():
            query = (
                "UPDATE to_mirror SET due = ? + min(60 << (2 * min(tries, 8)), 86400), tries = tries + 1 WHERE run = ?"
            )
            self._db.executemany(query, ((now, run) for run in runs))

    def keep(self, mirrored: Mapping[str, Mirrored]) -> None:
        """Keep what runs left."""
        import zlib

        with self._transaction():
            for run, each in mirrored.items():
                texts = [zlib.compress(text, 6) for text in (each.out, each.err, each.metrics)]
                sizes = (each.out_size, each.err_size, each.metrics_size)
                row = (run, each.at, *sizes, *texts, each.ending)
                self._db.execute("INSERT OR REPLACE INTO mirror VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
                self._db.execute("DELETE FROM to_mirror WHERE run = ?", (run,))

    def kept(self, run: str) -> Mirrored | None:
        """What of a run is here, whatever became of its folder; None if nothing is."""
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
        """Whether all that is to be kept of a run is here."""
        query = "SELECT 1 FROM mirror WHERE run = ?1 AND run NOT IN (SELECT run FROM to_mirror WHERE run = ?1)"
        return self._db.execute(query, (run,)).fetchone() is not None

    def note_parts(self, run: str, at: float, parts: bytes) -> None:
        """Remember what was seen of a run's folder."""
        self._db.execute("INSERT OR REPLACE INTO parts VALUES (?, ?, ?)", (run, at, parts))

    def parts(self, run: str) -> tuple[float, bytes] | None:
        """What was last seen of a run's folder, and when."""
        row = self._db.execute("SELECT at, parts FROM parts WHERE run = ?", (run,)).fetchone()
        return None if row is None else (row[0], row[1])
