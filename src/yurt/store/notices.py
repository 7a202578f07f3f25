"""Who wants to know when a run has ended."""

from __future__ import annotations

import sqlite3
from contextlib import AbstractContextManager


class Notices:
    """The part of the index that holds who is to be told."""

    _db: sqlite3.Connection

    def _transaction(self, *, durable: bool = False) -> AbstractContextManager[None]:
        raise NotImplementedError

    def note_notice(self, run: str, how: str) -> None:
        """Somebody wants to know when a run has ended; `how` they are told."""
        self._db.execute("INSERT OR REPLACE INTO notices VALUES (?, ?)", (run, how))

    def take_notices(self) -> list[tuple[str, str]]:
        """Runs that have ended and how somebody is to be told of it: each is handed out to one caller only."""
        query = "SELECT run, how FROM notices JOIN runs ON runs.id = run WHERE final"
        found = self._db.execute(query).fetchall()
        if not found:
            return []
        with self._transaction():
            return [row for row in found if self._db.execute("DELETE FROM notices WHERE run = ?", row[:1]).rowcount > 0]
