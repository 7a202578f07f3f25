"""Where results of runs were fetched to on this machine, and which run folders were removed from their sites."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import AbstractContextManager

import msgspec

from yurt.model.files import Measures


class Copy(msgspec.Struct, frozen=True, kw_only=True):
    """Fetched results of a run. `measures` are those of the folders on the site; empty if a part is not complete."""

    target: bytes
    at: float
    measures: Measures
    files: bytes = b""
    """A record of its files; empty if the copy is not complete, or an older yurt fetched it."""


class Copies:
    """The part of the index that records fetched and removed results."""

    _db: sqlite3.Connection

    def _transaction(self, *, durable: bool = False) -> AbstractContextManager[None]:
        raise NotImplementedError

    def race_name(self, run: str) -> str:
        raise NotImplementedError

    def winner_name(self, run: str) -> str:
        raise NotImplementedError

    def note_fetched(self, run: str, copy: Copy) -> None:
        """Record what was fetched. A later, smaller transfer to the same folder does not erase it."""
        update = "at = excluded.at"
        if any(copy.measures.by_part().values()):
            update += (
                ", outputs = iif(excluded.outputs = '', outputs, excluded.outputs),"
                " checkpoints = iif(excluded.checkpoints = '', checkpoints, excluded.checkpoints),"
                " work = iif(excluded.work = '', work, excluded.work), files = excluded.files"
            )
        self._db.execute(
            f"INSERT INTO fetched VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET {update}",
            (run, copy.target, copy.at, *copy.measures.by_part().values(), copy.files),
        )

    def copies(self, run: str) -> list[Copy]:
        """Return where results of a run were fetched to, newest first."""
        query = "SELECT target, at, files, outputs, checkpoints, work FROM fetched WHERE run IN (?, ?) ORDER BY at DESC"
        rows = self._db.execute(query, (run, self.race_name(run)))
        return [
            Copy(target=target, at=at, measures=Measures(*measures), files=files)
            for target, at, files, *measures in rows
        ]

    def note_going(self, runs: Iterable[str], at: float) -> None:
        """Record that run folders are about to be removed from their sites."""
        with self._transaction(durable=True):
            self._db.executemany("INSERT OR IGNORE INTO gone VALUES (?, ?)", ((run, -at) for run in runs))

    def note_gone(self, runs: Iterable[str], at: float) -> None:
        """Record that run folders were removed from their sites, and when."""
        query = "INSERT INTO gone VALUES (?, ?) ON CONFLICT DO UPDATE SET at = excluded.at WHERE at < 0"
        with self._transaction():
            self._db.executemany(query, ((run, at) for run in runs))

    def gone_at(self, run: str) -> float | None:
        """Return when a run folder was removed from its site; None if it was not, or the removal was not confirmed."""
        at = self._gone(run)
        return at if at is not None and at > 0 else None

    def all_gone(self, runs: Iterable[str]) -> set[str]:
        """Return those of these runs whose folder was removed from its site, with one query for all."""
        rows = dict(self._db.execute("SELECT run, at FROM gone WHERE at > 0"))
        return {run for run in runs if self._folder_of(run) in rows} if rows else set()

    def going_since(self, run: str) -> float | None:
        """Return when an unconfirmed removal began; None if there is none."""
        at = self._gone(run)
        return -at if at is not None and at < 0 else None

    def _gone(self, run: str) -> float | None:
        row = self._db.execute("SELECT at FROM gone WHERE run = ?", (self._folder_of(run),)).fetchone()
        return row[0] if row else None

    def _folder_of(self, run: str) -> str:
        """Return the run whose folder has the files of a run: tasks are removed with their sweep."""
        return (self.winner_name(run) or run).partition(".")[0]
