"""What earlier runs used, for advice about the next one."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple


class UsedRow(NamedTuple):
    """A finished run, or a finished task of one; all but the state and the time as JSON."""

    command: bytes
    params: bytes
    resources: bytes
    state: str
    usage: bytes | None
    seconds: float | None


def earlier(db: sqlite3.Connection, project: str, context: str, since: float, limit: int) -> list[UsedRow]:
    """Return the last finished runs of a project on a context, and tasks of its sweeps: at most so many of each, the
    newest first."""
    run, status = (f"json_extract(CAST({part} AS TEXT), '$.%s')" for part in ("records.run", "records.status"))
    columns = [*(run % name for name in ("tasks", "command", "params", "resources")), "runs.state"]
    columns += [status % name for name in ("usage", "seconds")]
    query = (
        f"SELECT runs.id, {', '.join(columns)} FROM runs JOIN records USING (id)"
        " WHERE created > ? AND project = ? AND context = ? AND final ORDER BY created DESC LIMIT ?"
    )
    task = "json_extract(CAST(status AS TEXT), '$.%s')"
    tasks = (
        f"SELECT state, {task % 'usage'}, {task % 'seconds'}"
        " FROM tasks WHERE sweep = ? AND final ORDER BY task DESC LIMIT ?"
    )
    found: list[UsedRow] = []
    for name, many, *row in db.execute(query, (since, project, context, limit)).fetchall():
        if not many:
            found.append(UsedRow(*row))
        elif len(found) < limit:
            found += [UsedRow(*row[:3], *each) for each in db.execute(tasks, (name, limit))]
    return found
