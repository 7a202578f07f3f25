"""Drafts in the index: plans that lack what only their site knows, because it was never reached."""

from __future__ import annotations

import sqlite3
from contextlib import AbstractContextManager

import msgspec

from yurt.model.run import Plan
from yurt.store.one_set import OneSet
from yurt.store.tasks import SetsOfTasks


class Drafts:
    """Saves drafts, and replaces them by complete plans."""

    _db: sqlite3.Connection
    _sets: tuple[str, SetsOfTasks] | None
    _first: tuple[str, int, OneSet | None] | None

    def _transaction(self, *, durable: bool = False) -> AbstractContextManager[None]:
        raise NotImplementedError

    def _add_draft(self, run: str, draft: bytes) -> None:
        if draft:
            self._db.execute("INSERT INTO drafts VALUES (?, ?)", (run, draft))

    def draft(self, run: str) -> bytes:
        """Return what completes the plan of a run whose site was never reached; empty if the plan is complete."""
        row = self._db.execute("SELECT draft FROM drafts WHERE id = ?", (run,)).fetchone()
        return b"" if row is None else bytes(row[0])

    def settle(self, plan: Plan) -> None:
        """Replace the plan of a run that was a draft by the complete one, and its record with it."""
        run = plan.run
        with self._transaction(durable=True):
            self._db.execute("DELETE FROM drafts WHERE id = ?", (run.id,))
            self._db.execute("UPDATE plans SET plan = ? WHERE id = ?", (msgspec.json.encode(plan), run.id))
            self._db.execute("UPDATE records SET run = ? WHERE id = ?", (msgspec.json.encode(run), run.id))
            self._db.execute("UPDATE runs SET folder = ? WHERE id = ?", (run.folder, run.id))
        self._sets = self._first = None
