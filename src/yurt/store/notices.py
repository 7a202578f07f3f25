"""Requested notifications about finished runs."""

from __future__ import annotations

import sqlite3
from contextlib import AbstractContextManager


class Notices:
    """The part of the index that records requested notifications."""

    _db: sqlite3.Connection

    def _transaction(self, *, durable: bool = False) -> AbstractContextManager[None]:
        raise NotImplementedError

    def note_notice(self, run: str, how: str) -> None:
        """Request a notification when a run finishes; `how` is the method or the command."""
        self._db.execute("INSERT OR REPLACE INTO notices VALUES (?, ?)", (run, how))

    def take_notices(self) -> list[tuple[str, str]]:
        """Return the due notifications (run, how) and remove them: each is returned to one caller only."""
        query = "SELECT run, how FROM notices JOIN runs ON runs.id = run WHERE final"
        found = self._db.execute(query).fetchall()
        if not found:
            return []
        with self._transaction():
            return [row for row in found if self._db.execute("DELETE FROM notices WHERE run = ?", row[:1]).rowcount > 0]
