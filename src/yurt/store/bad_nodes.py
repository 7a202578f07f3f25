"""Nodes that failed under runs."""

from __future__ import annotations

import sqlite3

import msgspec


class BadNode(msgspec.Struct, frozen=True):
    """A node that failed: when, under which run, and what its site said of it."""

    node: str
    at: float
    run: str
    why: str


class BadNodes:
    """The part of the index that remembers them."""

    _db: sqlite3.Connection

    def note_bad_node(self, context: str, bad: BadNode) -> None:
        row = (context, bad.node, bad.at, bad.run, bad.why)
        self._db.execute("INSERT OR REPLACE INTO bad_nodes VALUES (?, ?, ?, ?, ?)", row)

    def bad_nodes(self, context: str, since: float) -> list[BadNode]:
        """Nodes that failed since then, the last first."""
        query = "SELECT node, at, run, why FROM bad_nodes WHERE context = ? AND at >= ? ORDER BY at DESC"
        return [BadNode(*row) for row in self._db.execute(query, (context, since))]

    def forget_bad_node(self, context: str, node: str) -> bool:
        """Whether it was known."""
        done = self._db.execute("DELETE FROM bad_nodes WHERE context = ? AND node = ?", (context, node))
        return done.rowcount > 0
