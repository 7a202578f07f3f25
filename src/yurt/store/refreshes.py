"""State of contexts: the last refresh, a checksum of its answer, the code on the site, and uploads in progress."""

from __future__ import annotations

import sqlite3
import time

PARTS_KEPT = 86400.0
"""Seconds for which a site keeps the beginning of an interrupted upload."""


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

    def upload_interrupted(self, context: str, digest: str) -> bool:
        """Return whether an upload of this content was begun, and not completed, in the last day."""
        query = "SELECT 1 FROM uploads WHERE context = ? AND digest = ? AND at > ?"
        return self._db.execute(query, (context, digest, time.time() - PARTS_KEPT)).fetchone() is not None

    def needs_upload(self, run: str) -> bool:
        """Return whether a large upload for a run was interrupted in the last day."""
        query = "SELECT 1 FROM uploads WHERE run = ? AND at > ?"
        return self._db.execute(query, (run, time.time() - PARTS_KEPT)).fetchone() is not None

    def note_upload(self, context: str, digest: str, run: str) -> None:
        """Record that an upload begins. It counts as interrupted until `forget_upload`."""
        self._db.execute("INSERT OR REPLACE INTO uploads VALUES (?, ?, ?, ?)", (context, digest, run, time.time()))

    def forget_upload(self, context: str, digest: str) -> None:
        query = "DELETE FROM uploads WHERE (context = ? AND digest = ?) OR at < ?"
        self._db.execute(query, (context, digest, time.time() - PARTS_KEPT))
