"""Copies of results on a lasting tier of their own site, and the purge rules of sites as last read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import AbstractContextManager

import msgspec

from yurt.model.files import Measures

LAST_TASKS = 200
"""How many tasks of a sweep say how much each of them writes."""


class SiteCopy(msgspec.Struct, frozen=True, kw_only=True):
    """Results of a run that `yurt storage keep` copied to a lasting tier of the same context."""

    tier: str
    """The name of the tier."""
    path: str
    """The folder of the copy on the site."""
    at: float
    """When it was made."""
    measures: Measures = Measures()
    """What the run folder contained then; empty texts for parts that were not copied."""


class PurgeRule(msgspec.Struct, frozen=True):
    """A folder of a site whose files the site deletes."""

    context: str
    folder: str
    days: int


class SiteCopies:
    """The part of the index that records these copies."""

    _db: sqlite3.Connection

    def _transaction(self, *, durable: bool = False) -> AbstractContextManager[None]:
        raise NotImplementedError

    def race_name(self, run: str) -> str:
        raise NotImplementedError

    def note_site_copy(self, run: str, copy: SiteCopy) -> None:
        row = (run, copy.tier, copy.path, copy.at, *copy.measures.by_part().values())
        self._db.execute("INSERT OR REPLACE INTO site_copies VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def site_copy(self, run: str) -> SiteCopy | None:
        """Return the copy of a run or a task; None if there is none."""
        query = "SELECT tier, path, at, outputs, checkpoints, work FROM site_copies WHERE run IN (?, ?)"
        row = self._db.execute(query, (run, self.race_name(run))).fetchone()
        return SiteCopy(tier=row[0], path=row[1], at=row[2], measures=Measures(*row[3:])) if row else None

    def purge_rules(self, stamp: str) -> list[PurgeRule] | None:
        """Return the purge rules that were read from these files; None if the files changed since."""
        rows = self._db.execute("SELECT context, folder, days, stamp FROM purge_rules").fetchall()
        if not rows or rows[0][3] != stamp:
            return None
        return [PurgeRule(*row[:3]) for row in rows if row[0]]

    def note_purge_rules(self, stamp: str, rules: Iterable[PurgeRule]) -> None:
        """Replace the purge rules. `stamp` identifies the files that they were read from."""
        rows = [("", "", 0, stamp), *((each.context, each.folder, each.days, stamp) for each in rules)]
        with self._transaction():
            self._db.execute("DELETE FROM purge_rules")
            self._db.executemany("INSERT OR REPLACE INTO purge_rules VALUES (?, ?, ?, ?)", rows)

    def unsaved_tasks(self, sweep: str) -> list[int]:
        """Return the started tasks of a sweep that may have results of which no complete copy is recorded."""
        query = (
            "SELECT task FROM tasks WHERE sweep = ?1 AND json_extract(CAST(status AS TEXT), '$.started') IS NOT NULL"
            " AND coalesce(json_extract(CAST(status AS TEXT), '$.result_files'), 1) > 0"
            " AND NOT EXISTS (SELECT 1 FROM site_copies WHERE run = ?1 || '.' || task)"
            " AND NOT EXISTS (SELECT 1 FROM fetched WHERE run = ?1 || '.' || task AND files != x'')"
        )
        return [row[0] for row in self._db.execute(query, (sweep,))]

    def earlier_sizes(self, project: str, limit: int) -> list[tuple[str, str, int, int]]:
        """Return what the last finished runs of a project wrote: command (JSON), run, bytes, files. For a sweep, those
        of the largest of its last tasks."""
        query = (
            "SELECT json_extract(CAST(records.run AS TEXT), '$.command'), runs.id,"
            " json_extract(CAST(records.status AS TEXT), '$.result_bytes'),"
            " json_extract(CAST(records.status AS TEXT), '$.result_files')"
            " FROM runs JOIN records USING (id) WHERE project = ? AND final ORDER BY created DESC LIMIT ?"
        )
        largest = (
            "SELECT max(json_extract(CAST(status AS TEXT), '$.result_bytes')),"
            " max(json_extract(CAST(status AS TEXT), '$.result_files'))"
            f" FROM (SELECT status FROM tasks WHERE sweep = ? ORDER BY task DESC LIMIT {LAST_TASKS})"
        )
        found = []
        for command, run, *own in self._db.execute(query, (project, limit)).fetchall():
            size, files = own if own[0] is not None else self._db.execute(largest, (run,)).fetchone()
            if size is not None:
                found.append((command, run, size, files or 0))
        return found
