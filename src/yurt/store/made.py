"""The order in which runs were made on this machine, whatever its clock said, and the last one that was rejected."""

from __future__ import annotations

import sqlite3
from contextlib import suppress

from yurt.errors import RefusedError
from yurt.store.races import HIDDEN
from yurt.store.tasks import Entry, entry_of


class Made:
    """The part of the index that knows the last run."""

    _db: sqlite3.Connection

    def _note_made(self, run: str) -> None:
        self._db.execute("INSERT INTO made (run) VALUES (?)", (run,))

    def note_refused(self, why: str) -> None:
        """Record that the user's last run was rejected and is not in the index. Does nothing if the disk is full."""
        with suppress(sqlite3.Error, RefusedError):
            self._db.execute("INSERT INTO made (refused) VALUES (?)", (why,))

    def last_refused(self) -> str:
        """Return why the user's last run was rejected; empty if it was not."""
        row = self._db.execute(
            "SELECT refused FROM made WHERE refused != '' OR run IN (SELECT id FROM runs) ORDER BY number DESC LIMIT 1"
        ).fetchone()
        return row[0] if row else ""

    def last(self, *, sweep: bool = False, project: str = "", name: str = "") -> Entry | None:
        """Return the run, or the sweep, that was made last; one of another machine only if it is newer by its time.

        With `project` or `name`: of that project, with that name.
        """
        among = "runs JOIN sweeps USING (id)" if sweep else "runs"
        clauses, values = "", list[str]()
        if name:
            clauses, values = " AND name = ? AND name != ''", [name]
        if project:
            # The end of a project's label stands for its folder; its name may change.
            labels = [label for label in self._labels() if label.endswith(f"-{project.rpartition('-')[2]}")]
            clauses += f" AND project IN ({','.join('?' * len(labels))})"
            values += labels
        # Of few runs with a name, the last is chosen; else the list of runs is read from its end.
        tables = f"{among} CROSS JOIN made" if name else f"made CROSS JOIN {among}"
        here = self._db.execute(
            f"SELECT id, created FROM {tables} WHERE made.run = id{clauses} ORDER BY number DESC LIMIT 1", values
        ).fetchone()
        there = self._db.execute(
            f"SELECT id FROM {among} WHERE created > ? AND NOT EXISTS (SELECT 1 FROM made WHERE made.run = id)"
            f" AND id NOT IN ({HIDDEN}){clauses} ORDER BY created DESC LIMIT 1",
            (here[1] if here else 0, *values),
        ).fetchone()
        newest = there or here
        if newest is None:
            return None
        row = self._db.execute("SELECT run, status FROM records WHERE id = ?", (newest[0],)).fetchone()
        return entry_of(row)

    def _labels(self) -> list[str]:
        """Return the labels of all projects: one search of the index for each, not one step for each run."""
        query = (
            "WITH RECURSIVE each (label) AS (SELECT min(project) FROM runs UNION ALL"
            " SELECT (SELECT min(project) FROM runs WHERE project > label) FROM each WHERE label IS NOT NULL)"
            " SELECT label FROM each WHERE label IS NOT NULL"
        )
        return [row[0] for row in self._db.execute(query)]
