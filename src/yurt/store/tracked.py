"""Runs with the setting `track`: when and where they were sent to MLflow, or why not yet."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import AbstractContextManager

import msgspec

from yurt.model.run import Run


class Tracked(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is sent to MLflow when it has finished."""

    run: str
    """The run, or the sweep of the task."""
    uri: str
    """Where to; empty: the store of this machine."""
    at: float = 0
    """When it was sent; 0: not yet."""
    tries: int = 0
    """How often that failed."""
    due: float = 0
    """When it is tried next."""
    why: str = ""
    """Why the last try failed."""


COLUMNS = "run, uri, at, tries, due, why"


class Tracking:
    """The part of the index that records which runs are sent to MLflow."""

    _db: sqlite3.Connection

    def _transaction(self, *, durable: bool = False) -> AbstractContextManager[None]:
        raise NotImplementedError

    def _add_tracked(self, run: Run) -> None:
        settings = {each.key: each.value for each in run.settings}
        if settings.get("track") is True and run.purpose == "run" and run.race in ("", run.id):
            row = (run.id, str(settings.get("mlflow_uri") or ""))
            self._db.execute("INSERT OR REPLACE INTO tracked VALUES (?, ?, 0, 0, 0, '', 0)", row)

    def to_track(self, before: float) -> list[Tracked]:
        """Return the finished runs that are due to be sent."""
        query = (
            f"SELECT {COLUMNS} FROM tracked JOIN runs ON runs.id = run WHERE at = 0 AND due <= ? AND final ORDER BY run"
        )
        return [_tracked(row) for row in self._db.execute(query, (before,)).fetchall()]

    def tracked(self, run: str) -> Tracked | None:
        """Return what is recorded about a run; None if it does not have the setting."""
        row = self._db.execute(f"SELECT {COLUMNS} FROM tracked WHERE run = ?", (run,)).fetchone()
        return None if row is None else _tracked(row)

    def track_later(self, runs: Iterable[str], until: float) -> None:
        """Let no other process send these runs before a time."""
        with self._transaction():
            self._db.executemany("UPDATE tracked SET due = ? WHERE run = ?", ((until, run) for run in runs))

    def note_tracked(self, run: str, now: float) -> None:
        self._db.execute("UPDATE tracked SET at = ?, why = '' WHERE run = ?", (now, run))

    def note_track_failed(self, run: str, now: float, why: str) -> None:
        """Postpone a run after a failure: by a minute, then by growing intervals."""
        query = (
            "UPDATE tracked SET due = ? + min(60 << (2 * min(tries, 8)), 86400), tries = tries + 1, why = ?"
            " WHERE run = ?"
        )
        self._db.execute(query, (now, why, run))

    def take_unwarned(self, runs: Iterable[str]) -> list[str]:
        """Return those runs about which the user was not warned, each to one caller only."""
        with self._transaction():
            query = "UPDATE tracked SET warned = 1 WHERE run = ? AND NOT warned"
            return [run for run in runs if self._db.execute(query, (run,)).rowcount > 0]


def _tracked(row: tuple[str, str, float, int, float, str]) -> Tracked:
    run, uri, at, tries, due, why = row
    return Tracked(run=run, uri=uri, at=at, tries=tries, due=due, why=why)
