"""Runs in an SQLite file: an index that several yurts read and write at once.

The run folder on the context is the truth; only what has not arrived there yet (its plan) is here alone.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

import msgspec

from yurt.errors import RefusedError
from yurt.model import ids
from yurt.model.run import FINAL, Plan, Run, Spot, Status
from yurt.store.mirror import Mirror
from yurt.store.tasks import Tasks, task_of

# What lists are made of is apart from what is read of one run: thousands of runs are gone through in a millisecond.
SCHEMA = """\
CREATE TABLE runs (
    id TEXT PRIMARY KEY, created REAL NOT NULL, context TEXT NOT NULL, project TEXT NOT NULL, name TEXT NOT NULL,
    folder TEXT NOT NULL, state TEXT NOT NULL, final INTEGER NOT NULL, cancel INTEGER NOT NULL, mark TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX by_time ON runs (created);
CREATE INDEX unfinished ON runs (context, created, state, cancel) WHERE NOT final;
CREATE TABLE records (id TEXT PRIMARY KEY, run BLOB NOT NULL, status BLOB NOT NULL);
CREATE TABLE plans (id TEXT PRIMARY KEY, plan BLOB NOT NULL);
CREATE TABLE code (context TEXT, project TEXT, tree TEXT NOT NULL, PRIMARY KEY (context, project)) WITHOUT ROWID;
CREATE TABLE looks (context TEXT PRIMARY KEY, at REAL NOT NULL, answer BLOB NOT NULL) WITHOUT ROWID;
"""

LATER = [
    """\
CREATE TABLE retries (run TEXT PRIMARY KEY, of_run TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX by_retried ON retries (of_run);
""",
    """\
CREATE TABLE fetched (
    run TEXT, target BLOB, at REAL NOT NULL, outputs TEXT NOT NULL, checkpoints TEXT NOT NULL,
    PRIMARY KEY (run, target)
) WITHOUT ROWID;
CREATE TABLE gone (run TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
""",
    """\
CREATE TABLE bad_nodes (
    context TEXT, node TEXT, at REAL NOT NULL, run TEXT NOT NULL, why TEXT NOT NULL, PRIMARY KEY (context, node)
) WITHOUT ROWID;
""",
    """\
CREATE TABLE notices (run TEXT PRIMARY KEY, how TEXT NOT NULL) WITHOUT ROWID;
""",
    """\
CREATE TABLE to_mirror (
    run TEXT PRIMARY KEY, context TEXT NOT NULL, since REAL NOT NULL, tries INTEGER NOT NULL, due REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE mirror (
    run TEXT PRIMARY KEY, at REAL NOT NULL, out_size INTEGER NOT NULL, err_size INTEGER NOT NULL,
    metrics_size INTEGER NOT NULL, out BLOB NOT NULL, err BLOB NOT NULL, metrics BLOB NOT NULL, ending BLOB NOT NULL
);
CREATE TABLE parts (run TEXT PRIMARY KEY, at REAL NOT NULL, parts BLOB NOT NULL) WITHOUT ROWID;
""",
    """\
CREATE TABLE sweeps (id TEXT PRIMARY KEY, size INTEGER NOT NULL, pending INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE tasks (
    sweep TEXT, task INTEGER, state TEXT NOT NULL, final INTEGER NOT NULL, status BLOB NOT NULL,
    PRIMARY KEY (sweep, task)
) WITHOUT ROWID;
""",
]
"""What each later version added. A new index gets all of it; an old one what it lacks, and keeps what it has."""

VERSION = 1 + len(LATER)

INSIDE = "('waiting', 'submitting')"
"""States of runs that have not surely left this machine."""


class Entry(msgspec.Struct, frozen=True):
    """A run and how it stands."""

    run: Run
    status: Status


class BadNode(msgspec.Struct, frozen=True):
    """A node that failed: when, under which run, and what its site said of it."""

    node: str
    at: float
    run: str
    why: str


class Copy(msgspec.Struct, frozen=True, kw_only=True):
    """Results of a run in a folder of this machine's. What they looked like on the site is empty if not all came."""

    target: bytes
    at: float
    outputs: str = ""
    checkpoints: str = ""


class Store(Mirror, Tasks):
    """The index in one file, made if absent, for its owner's eyes only."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._sets: Plan | None = None
        old = os.umask(0o077)
        try:
            os.makedirs(os.path.dirname(file), mode=0o700, exist_ok=True)
            self._db = sqlite3.connect(file, timeout=30, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")  # what is lost with the power is seen again at the site
            self._make(file)
        except sqlite3.Error as error:
            raise _unusable(file, str(error)) from None
        except OSError as error:
            raise _unusable(file, error.strerror or str(error)) from None
        finally:
            os.umask(old)

    def _make(self, file: str) -> None:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version == VERSION:
            return
        if version > VERSION:
            raise _unusable(file, "a newer yurt made it")
        with self._transaction():
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            for step in [SCHEMA, *LATER][version:]:
                for statement in step.split(";\n"):
                    self._db.execute(statement)
            if version < VERSION:
                self._db.execute(f"PRAGMA user_version = {VERSION}")

    @contextmanager
    def _transaction(self, *, durable: bool = False) -> Iterator[None]:
        if durable:
            self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")
        if durable:
            self._db.execute("PRAGMA synchronous = NORMAL")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._db.close()

    def twin(self) -> Store:
        """The same index for another thread."""
        return Store(self.file)

    def add(self, run: Run, status: Status, plan: Plan | None = None) -> None:
        """A new run; when this returns not even a power cut makes it vanish."""
        with self._transaction(durable=True):
            self._add(run, status, plan)

    def add_found(self, found: Iterable[tuple[Run, Status, Plan | None]]) -> list[str]:
        """Runs that were found on a site; those that are known are left as they are. Returns the new ones."""
        new: list[str] = []
        with self._transaction(durable=True):
            for run, status, plan in found:
                if self._db.execute("SELECT 1 FROM runs WHERE id = ?", (run.id,)).fetchone() is None:
                    self._add(run, status, plan)
                    self._to_mirror(run.id, status)
                    new.append(run.id)
        return new

    def _add(self, run: Run, status: Status, plan: Plan | None) -> None:
        if run.sets and not status.tally:
            status = msgspec.structs.replace(status, tally={"waiting": run.sets})
        row = (run.id, run.created, run.context, run.project, run.name, run.folder, status.state, status.final)
        if plan is not None:
            self._db.execute("INSERT INTO plans VALUES (?, ?)", (run.id, _json(plan)))
        self._db.execute("INSERT INTO records VALUES (?, ?, ?)", (run.id, _json(run), _json(status)))
        if run.sets:
            self._db.execute("INSERT INTO sweeps VALUES (?, ?, ?)", (run.id, run.sets, run.sets))
        self._db.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '')", (*row, status.cancel))
        if run.retry_of:
            self._db.execute("INSERT INTO retries VALUES (?, ?)", (run.id, run.retry_of))

    def remove(self, run: str) -> None:
        with self._transaction():
            self._db.execute("DELETE FROM tasks WHERE sweep = ?", (run,))
            for table in ("runs", "records", "plans", "sweeps"):
                self._db.execute(f"DELETE FROM {table} WHERE id = ?", (run,))
            for table in ("retries", "fetched", "gone", "notices", "to_mirror", "mirror", "parts"):
                self._db.execute(f"DELETE FROM {table} WHERE run = ?", (run,))

    def get(self, run: str) -> Entry | None:
        if task := ids.split_task(run):
            return self._task(*task)
        row = self._db.execute("SELECT run, status FROM records WHERE id = ?", (run,)).fetchone()
        return None if row is None else _entry(row)

    def _task(self, sweep: str, number: int) -> Entry | None:
        whole = self.get(sweep)
        if whole is None or number >= whole.run.sets:
            return None
        if self._sets is None or self._sets.run.id != sweep:
            self._sets = self.plan(sweep)  # one with ten thousand sets is not read ten thousand times
        plan = self._sets
        if plan is None:
            return None
        return Entry(task_of(whole.run, plan, number), self.task_status(sweep, number, whole.status))

    def plan(self, run: str) -> Plan | None:
        """What is needed to submit a run, or another one like it; None if that is not known here."""
        row = self._db.execute("SELECT plan FROM plans WHERE id = ?", (run,)).fetchone()
        return None if row is None else msgspec.json.decode(row[0], type=Plan)

    def retries(self, run: str) -> list[str]:
        """Runs that were made by retrying one, the oldest first."""
        return [row[0] for row in self._db.execute("SELECT run FROM retries WHERE of_run = ? ORDER BY run", (run,))]

    def matching(self, prefix: str) -> list[str]:
        """Ids that begin with a text, or whose second part does; the newest first."""
        text = prefix.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        query = (
            "SELECT id FROM runs WHERE id LIKE ? ESCAPE '\\' OR id LIKE ? ESCAPE '\\' ORDER BY created DESC LIMIT 20"
        )
        return [row[0] for row in self._db.execute(query, (f"{text}%", f"%-{text}%"))]

    def newest(
        self,
        limit: int | None = None,
        *,
        where: Mapping[str, Sequence[str]] | None = None,
        unfinished: bool = False,
    ) -> Iterator[Entry]:
        """Runs, the newest first; `where` holds allowed values by column (context, project, name, state)."""
        clauses = ["NOT final"] if unfinished else []
        values: list[str] = []
        for column, allowed in (where or {}).items():
            if column not in ("context", "project", "name", "state"):
                raise LookupError(column)
            clauses.append(f"{column} IN ({','.join('?' * len(allowed))})")
            values += allowed
        query = "SELECT run, status FROM runs JOIN records USING (id)" + (
            f" WHERE {' AND '.join(clauses)}" if clauses else ""
        )
        rows = self._db.execute(
            f"{query} ORDER BY created DESC, id DESC LIMIT ?", (*values, -1 if limit is None else limit)
        )
        return (_entry(row) for row in rows)

    def contexts_of_unfinished(self) -> list[str]:
        return [row[0] for row in self._db.execute("SELECT DISTINCT context FROM runs WHERE NOT final")]

    def spots(self, context: str, also: Iterable[str] = ()) -> list[Spot]:
        """Runs that a look at a context may tell something of: the unfinished ones that went out, and `also`."""
        query = f"SELECT id, folder, created, mark FROM runs WHERE context = ? AND NOT final AND state NOT IN {INSIDE}"
        found = [self._with_tasks(Spot(*row)) for row in self._db.execute(query, (context,))]
        known = {spot.id for spot in found}
        for run in also:
            row = self._db.execute("SELECT id, folder, created FROM runs WHERE id = ?", (run,)).fetchone()
            if row is not None and run not in known:
                found.append(Spot(*row))
        return found

    def outbox(self, context: str) -> list[str]:
        """Runs that have not surely gone out, in the order they were asked for."""
        pending = "id IN (SELECT id FROM sweeps WHERE pending > 0)"
        query = (
            f"SELECT id FROM runs WHERE context = ? AND NOT final AND (state IN {INSIDE} OR {pending})"
            " ORDER BY created, id"
        )
        return [row[0] for row in self._db.execute(query, (context,))]

    def cancels(self, context: str) -> list[str]:
        """Runs the user wants ended whose site has not been told."""
        query = "SELECT id FROM runs WHERE context = ? AND NOT final AND cancel"
        found = [row[0] for row in self._db.execute(query, (context,))]
        query = (
            "SELECT sweep || '.' || task FROM tasks JOIN runs ON runs.id = sweep WHERE context = ? AND NOT runs.final"
            " AND NOT tasks.final AND json_extract(CAST(tasks.status AS TEXT), '$.cancel')"
        )
        return found + [row[0] for row in self._db.execute(query, (context,))]

    def change(
        self,
        runs: Iterable[str],
        how: Callable[[str, Status], Status],
        mark: Callable[[str, Status], str] = lambda _run, _status: "",
    ) -> dict[str, Status]:
        """Set new statuses, each made of the one that stands now, and new marks; returns those that changed."""
        changed: dict[str, Status] = {}
        with self._transaction():
            for run in runs:
                row = self._db.execute(
                    "SELECT status, mark FROM runs JOIN records USING (id) WHERE id = ?", (run,)
                ).fetchone()
                if row is None:
                    continue
                before = msgspec.json.decode(row[0], type=Status)
                after = how(run, before)
                known_by = mark(run, after)
                if after == before and known_by == row[1]:
                    continue
                if after != before:
                    changed[run] = after
                self._db.execute("UPDATE records SET status = ? WHERE id = ?", (_json(after), run))
                values = (after.state, after.state in FINAL, after.cancel, known_by, run)
                self._db.execute("UPDATE runs SET state = ?, final = ?, cancel = ?, mark = ? WHERE id = ?", values)
                if after.state != before.state:
                    self._to_mirror(run, after)
        return changed

    def code_at(self, context: str, project: str) -> str:
        """The tree a context was last seen to have of a project; empty if none."""
        query = "SELECT tree FROM code WHERE context = ? AND project = ?"
        row = self._db.execute(query, (context, project)).fetchone()
        return row[0] if row else ""

    def note_code(self, context: str, project: str, tree: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO code VALUES (?, ?, ?)", (context, project, tree))

    def note_fetched(self, run: str, copy: Copy) -> None:
        """Remember what came home. A later transfer of less to the same folder takes nothing back."""
        self._db.execute(
            "INSERT INTO fetched VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET at = excluded.at,"
            " outputs = iif(excluded.outputs = '', outputs, excluded.outputs),"
            " checkpoints = iif(excluded.checkpoints = '', checkpoints, excluded.checkpoints)",
            (run, copy.target, copy.at, copy.outputs, copy.checkpoints),
        )

    def copies(self, run: str) -> list[Copy]:
        """Where results of a run were brought to, the newest first."""
        query = "SELECT target, at, outputs, checkpoints FROM fetched WHERE run = ? ORDER BY at DESC"
        return [
            Copy(target=target, at=at, outputs=outputs, checkpoints=checkpoints)
            for target, at, outputs, checkpoints in self._db.execute(query, (run,))
        ]

    def note_going(self, runs: Iterable[str], at: float) -> None:
        """Remember that folders of runs are about to be removed from their sites."""
        with self._transaction(durable=True):
            self._db.executemany("INSERT OR IGNORE INTO gone VALUES (?, ?)", ((run, -at) for run in runs))

    def note_gone(self, runs: Iterable[str], at: float) -> None:
        """Remember that folders of runs were removed from their sites, and when."""
        query = "INSERT INTO gone VALUES (?, ?) ON CONFLICT DO UPDATE SET at = excluded.at WHERE at < 0"
        with self._transaction():
            self._db.executemany(query, ((run, at) for run in runs))

    def gone_at(self, run: str) -> float | None:
        """When the folder of a run was removed from its site; None if it was not, or nobody saw the end of it."""
        at = self._gone(run)
        return at if at is not None and at > 0 else None

    def going_since(self, run: str) -> float | None:
        """When a removal was begun of which nobody saw the end."""
        at = self._gone(run)
        return -at if at is not None and at < 0 else None

    def _gone(self, run: str) -> float | None:
        row = self._db.execute("SELECT at FROM gone WHERE run = ?", (run,)).fetchone()
        return row[0] if row else None

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

    def note_notice(self, run: str, how: str) -> None:
        """Somebody wants to know when a run has ended; `how` they are told."""
        self._db.execute("INSERT OR REPLACE INTO notices VALUES (?, ?)", (run, how))

    def take_notices(self) -> list[tuple[str, str]]:
        """Runs that have ended and how somebody is to be told of it: each is handed out to one caller only."""
        query = "SELECT run, how FROM notices JOIN runs ON runs.id = run WHERE final"
        found = self._db.execute(query).fetchall()
        if not found:
            return []
        with self._transaction():
            return [row for row in found if self._db.execute("DELETE FROM notices WHERE run = ?", row[:1]).rowcount > 0]

    def looked_at(self, context: str) -> float | None:
        row = self._db.execute("SELECT at FROM looks WHERE context = ?", (context,)).fetchone()
        return row[0] if row else None

    def answer(self, context: str) -> bytes:
        """A checksum of what a context answered to the last look; empty if it was never looked at."""
        row = self._db.execute("SELECT answer FROM looks WHERE context = ?", (context,)).fetchone()
        return row[0] if row else b""

    def note_look(self, context: str, at: float, answer: bytes = b"") -> None:
        self._db.execute("INSERT OR REPLACE INTO looks VALUES (?, ?, ?)", (context, at, answer))


def _unusable(file: str, why: str) -> RefusedError:
    return RefusedError(f"the index of runs, {file}, cannot be used: {why}", code="index-unusable")


def _json(value: Any) -> bytes:
    return msgspec.json.encode(value)


def _entry(row: tuple[bytes, bytes]) -> Entry:
    return Entry(msgspec.json.decode(row[0], type=Run), msgspec.json.decode(row[1], type=Status))
