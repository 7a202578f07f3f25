"""What was last seen of a context: its answer to a look, and the code it has."""

from __future__ import annotations

import sqlite3


class Refreshes:
    """The part of the index that is of contexts, not of runs."""

    _db: sqlite3.Connection

    def code_at(self, context: str, project: str) -> str:
        """The tree a context was last seen to have of a project; empty if none."""
        query = "SELECT tree FROM code WHERE context = ? AND project = ?"
        row = self._db.execute(query, (context, project)).fetchone()
        return row[0] if row else ""

    def note_code(self, context: str, project: str, tree: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO code VALUES (?, ?, ?)", (context, project, tree))

    def refreshed_at(self, context: str) -> float | None:
        row = self._db.execute("SELECT at FROM looks WHERE context = ?", (context,)).fetchone()
        return row[0] if row else None

    def answer(self, context: str) -> bytes:
        """A checksum of what a context answered to the last look; empty if it was never looked at."""
        row = self._db.execute("SELECT answer FROM looks WHERE context = ?", (context,)).fetchone()
        return row[0] if row else b""

    def note_refresh(self, context: str, at: float, answer: bytes = b"") -> None:
        self._db.execute("INSERT OR REPLACE INTO looks VALUES (?, ?, ?)", (context, at, answer))
