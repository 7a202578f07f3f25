"""State of contexts at the last refresh: when it was, a checksum of the answer, and the code on the site."""

from __future__ import annotations

import sqlite3


class Refreshes:
    """The part of the index about contexts."""

    _db: sqlite3.Connection

    def code_at(self, context: str, project: str) -> str:
        """Return the tree of a project that a context last had; empty if none."""
        query = "SELECT tree FROM code WHERE context = ? AND project = ?"
        row = self._db.execute(query, (context, project)).fetchone()
        return row[0] if row else ""

    def note_code(self, context: str, project: str, tree: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO code VALUES (?, ?, ?)", (context, project, tree))

    def refreshed_at(self, context: str) -> float | None:
        row = self._db.execute("SELECT at FROM looks WHERE context = ?", (context,)).fetchone()
        return row[0] if row else None

    def answer(self, context: str) -> bytes:
        """Return the checksum of a context's answer to the last refresh; empty if there was none."""
        row = self._db.execute("SELECT answer FROM looks WHERE context = ?", (context,)).fetchone()
        return row[0] if row else b""

    def note_refresh(self, context: str, at: float, answer: bytes = b"") -> None:
        self._db.execute("INSERT OR REPLACE INTO looks VALUES (?, ?, ?)", (context, at, answer))
