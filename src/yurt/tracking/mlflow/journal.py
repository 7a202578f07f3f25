"""What was written to an MLflow store: which MLflow run is which run of yurt, and up to where its metrics are in it.

A run is marked before something is written and unmarked after that is recorded. A marked run was interrupted: what may
be written already has to be read back.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from yurt import private
from yurt.config import paths
from yurt.model.digest import digest
from yurt.tracking.mlflow.points import Position

TABLE = """\
CREATE TABLE IF NOT EXISTS runs (
    key TEXT PRIMARY KEY, mlflow TEXT NOT NULL, marked INTEGER NOT NULL, print TEXT NOT NULL, final INTEGER NOT NULL,
    written BLOB NOT NULL
) WITHOUT ROWID
"""


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """What is in an MLflow run."""

    mlflow: str = ""
    """Its id in MLflow."""
    marked: bool = False
    print: str = ""
    final: bool = False
    positions: dict[str, Position] = {}
    tags: dict[str, str] = {}


class _Blob(msgspec.Struct):
    positions: dict[str, Position]
    tags: dict[str, str]


class Journal:
    """The journal of one MLflow store. Only the process that holds the lock may use it."""

    def __init__(self, file: Path) -> None:
        os.close(private.opener(str(file), os.O_RDWR | os.O_CREAT))
        self._db = sqlite3.connect(file, isolation_level=None, timeout=30)
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute(TABLE)

    def close(self) -> None:
        self._db.close()

    def get(self, key: str) -> Written:
        row = self._db.execute(
            "SELECT mlflow, marked, print, final, written FROM runs WHERE key = ?", (key,)
        ).fetchone()
        if row is None:
            return Written()
        blob = msgspec.json.decode(row[4], type=_Blob)
        return Written(
            mlflow=row[0],
            marked=bool(row[1]),
            print=row[2],
            final=bool(row[3]),
            positions=blob.positions,
            tags=blob.tags,
        )

    def put(self, key: str, written: Written) -> None:
        """Record what is in an MLflow run. On return it is safe on disk."""
        blob = msgspec.json.encode(_Blob(written.positions, written.tags))
        row = (key, written.mlflow, written.marked, written.print, written.final, blob)
        self._db.execute("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?)", row)

    def finished(self) -> set[str]:
        """Return the keys of the runs of which nothing more is expected."""
        return {row[0] for row in self._db.execute("SELECT key FROM runs WHERE final AND NOT marked")}


def folder() -> Path:
    """Return yurt's folder for MLflow on this machine."""
    return paths.data_home() / "mlflow"


@contextmanager
def opened(uri: str) -> Iterator[Journal]:
    """Open the journal of a store; waits until no other process of this machine uses it."""
    place = folder() / "journals"
    paths.make_private(place)
    name = digest(uri).hex()
    with open(place / f"{name}.lock", "ab", opener=private.opener) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        journal = Journal(place / f"{name}.sqlite")
        try:
            yield journal
        finally:
            journal.close()
