"""Nodes that failed while they executed runs."""

from __future__ import annotations

import sqlite3

import msgspec


class BadNode(msgspec.Struct, frozen=True):
    """A node that failed: when, under which run, and the reason its site gave."""

    node: str
    at: float
    run: str
    why: str


class BadNodes:
    """The part of the index that records bad nodes."""

    _db: sqlite3.Connection

    def note_bad_node(self, context: str, bad: BadNode) -> None:
        row = (context, bad.node, bad.at, bad.run, bad.why)
        self._db.execute("INSERT OR REPLACE INTO bad_nodes VALUES (?, ?, ?, ?, ?)", row)

    def bad_nodes(self, context: str, since: float) -> list[BadNode]:
        """Return nodes that failed after `since`, latest first."""
        query = "SELECT node, at, run, why FROM bad_nodes WHERE context = ? AND at >= ? ORDER BY at DESC"
        return [BadNode(*row) for row in self._db.execute(query, (context, since))]

    def forget_bad_node(self, context: str, node: str) -> bool:
        """Remove a node from the list. Return whether it was listed."""
        done = self._db.execute("DELETE FROM bad_nodes WHERE context = ? AND node = ?", (context, node))
        return done.rowcount > 0
