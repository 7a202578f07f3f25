"""The index of runs: an SQLite file that several yurt processes read and write concurrently.

The run folder on the site is authoritative. What no site knows yet is here, and in files beside the index: see `saved`.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self

import msgspec

from yurt.errors import here_is_full, use_another
from yurt.model import ids, layout
from yurt.model.run import FINAL, Plan, Run, RunRef, Status
from yurt.model.status_answer import valid_mark
from yurt.model.tasks import numbers
from yurt.store.archive import Mirror
from yurt.store.bad_nodes import BadNodes
from yurt.store.connection import FREE, connect, damaged, explained, is_full, unusable
from yurt.store.copies import Copies
from yurt.store.drafts import Drafts
from yurt.store.estimates import Estimates
from yurt.store.made import Made
from yurt.store.notices import Notices
from yurt.store.one_set import OneSet, one_set
from yurt.store.races import HIDDEN, RACES, Races, placed
from yurt.store.refreshes import Refreshes
from yurt.store.saved import SavedFiles
from yurt.store.schema import LATER, RENAME_FIELDS, SCHEMA, VERSION
from yurt.store.site_copies import SiteCopies
from yurt.store.tasks import OPEN, Entry, SetsOfTasks, Tasks, entry_of, task_of, usual
from yurt.store.tracked import Tracking

if TYPE_CHECKING:
    from yurt.store.usages import UsedRow

UNSUBMITTED = "('waiting', 'submitting')"
"""States of runs that are possibly not submitted yet."""


SECOND_PART = "substr(id, instr(id, '-') + 1)"
"""The random part of an id, as the index of the table has it."""

MANY = 500
"""Runs in one query: an older SQLite allows 999 parameters."""

HIGHEST = "\U0010ffff"
"""Sorts after all characters of ids and names."""

EMPTY = 10.0
"""Seconds for which a new index may be empty, while another process creates its tables."""


class Found(msgspec.Struct, frozen=True):
    """A run that was found on a site; for a sweep, also the statuses of tasks by number."""

    run: Run
    status: Status
    plan: Plan | None
    tasks: dict[int, Status] = {}


class Sets(msgspec.Struct, frozen=True):
    """The part of a plan that `Store.sets` reads."""

    sets: list[dict[str, Any]] = []


class Store(
    BadNodes,
    Drafts,
    Estimates,
    Made,
    Refreshes,
    Mirror,
    Notices,
    SavedFiles,
    Tasks,
    Races,
    Copies,
    SiteCopies,
    Tracking,
):
    """The index in one file, which is created if absent and readable only by its owner."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._sets: tuple[str, SetsOfTasks] | None = None
        self._first: tuple[str, int, OneSet | None] | None = None
        try:
            _check_not_emptied(file)
            _make_private(file)
            self._db: sqlite3.Connection = connect(file)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")  # what a power failure loses is read again from the site
            self._make(file)
        except sqlite3.Error as error:
            raise explained(error, file) from None
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise here_is_full(f"the run index {file}", error.strerror or "", hint=FREE) from None
            hint = use_another("YURT_DATA_HOME")
            raise unusable(file, error.strerror or str(error), hint=hint) from None

    def earlier_usages(self, project: str, context: str, since: float, limit: int) -> list[UsedRow]:
        """Return what earlier runs used: see `yurt.store.usages`."""
        from yurt.store.usages import earlier

        return earlier(self._db, project, context, since, limit)

    def _make(self, file: str) -> None:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version == VERSION:
            return
        if version > VERSION:
            raise unusable(file, "it was created by a newer yurt")
        with self._transaction():
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            for step in [SCHEMA, *LATER][version:]:
                if step == RENAME_FIELDS:
                    from yurt.store import older

                    older.rename_fields(self._db)
                    continue
                for statement in step.split(";\n"):
                    self._db.execute(statement)
            if not version:
                self._add_saved()
            if version < VERSION:
                self._db.execute(f"PRAGMA user_version = {VERSION}")

    @contextmanager
    def _transaction(self, *, durable: bool = False) -> Iterator[None]:
        if durable:
            self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # SQLite has ended it by itself if the disk is full
                self._db.execute("ROLLBACK")
            raise
        if durable:
            self._db.execute("PRAGMA synchronous = NORMAL")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._db.close()

    def twin(self) -> Store:
        """Open the same index for another thread."""
        return Store(self.file)

    def add(self, run: Run, status: Status, plan: Plan | None = None, draft: bytes = b"") -> None:
        """Add a new run. On return it is safe on disk, even after a power failure. `draft`: see `settle`."""
        with self._transaction(durable=True):
            self._add(run, status, plan)
            self._add_draft(run.id, draft)
            self._note_made(run.id)
        self._keep_file(run.id, None, status)

    def add_found(self, found: Iterable[Found]) -> list[str]:
        """Add runs found on a site and return the new ones. Runs already in the index are not changed."""
        new: list[str] = []
        with self._transaction(durable=True):
            for each in found:
                run, status = each.run, each.status
                if not status.final and self.is_cancellation_saved(run.id):
                    status = msgspec.structs.replace(status, cancel_requested=True)
                if self._db.execute("SELECT 1 FROM runs WHERE id = ?", (run.id,)).fetchone() is None:
                    self._add(run, status, each.plan)
                    if run.tasks:
                        self._add_tasks(run.id, each.tasks, status)
                    else:
                        self._to_mirror(run.id, status)
                    new.append(run.id)
        return new

    def _add(self, run: Run, status: Status, plan: Plan | None) -> None:
        if run.tasks and not status.task_states:
            status = msgspec.structs.replace(status, task_states={"waiting": run.tasks})
        row = (run.id, run.created, run.context, run.project, run.name, run.folder, status.state, status.final)
        if plan is not None:
            self._db.execute("INSERT INTO plans VALUES (?, ?)", (run.id, _json(plan)))
        self._db.execute("INSERT INTO records VALUES (?, ?, ?)", (run.id, _json(run), _json(status)))
        if run.tasks:
            self._db.execute("INSERT INTO sweeps VALUES (?, ?, ?, '')", (run.id, run.tasks, run.tasks))
        self._db.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '')", (*row, status.cancel_requested))
        self._add_candidate(run)
        self._add_tracked(run)
        if run.retry_of and run.race in ("", run.id):
            self._db.execute("INSERT INTO retries VALUES (?, ?)", (run.id, run.retry_of))

    def remove(self, run: str) -> None:
        """Remove a run from the index; of a race, also its candidates."""
        with self._transaction():
            self._remove(run)
            self._remove_race(run)
        self._remove_file(run)

    def _remove(self, run: str) -> None:
        self._db.execute("DELETE FROM tasks WHERE sweep = ?", (run,))
        for table in ("runs", "records", "plans", "drafts", "sweeps"):
            self._db.execute(f"DELETE FROM {table} WHERE id = ?", (run,))
        for table in (
            "retries",
            "fetched",
            "gone",
            "notices",
            "to_mirror",
            "mirror",
            "parts",
            "tracked",
            "site_copies",
            "estimates",
        ):
            self._db.execute(f"DELETE FROM {table} WHERE run = ?1 OR run GLOB ?1 || '.*'", (run,))

    def disk_is_full(self) -> bool:
        """Whether the disk of the index has almost no space left."""
        return is_full(self.file)

    def get(self, run: str) -> Entry | None:
        if task := ids.split_task(run):
            return self._task(*task)
        row = self._db.execute("SELECT run, status FROM records WHERE id = ?", (run,)).fetchone()
        return None if row is None else entry_of(row)

    def _task(self, sweep: str, number: int) -> Entry | None:
        whole = self.get(sweep)
        if whole is None or number >= whole.run.tasks:
            return None
        plan = self._one_set(sweep, number, whole.run.tasks) or self._sets_of_tasks(sweep)
        if plan is None:
            return None
        run = task_of(whole.run, plan, number)
        if whole.run.race == sweep:
            run = placed(run, self.item_places(sweep).get(number))
        return Entry(run, self.task_status(sweep, number, whole.status))

    def _one_set(self, sweep: str, number: int, count: int) -> OneSet | None:
        """Return the set of the first task that is read of a sweep; None for others: `_sets_of_tasks` has them all."""
        if self._first is None or self._first[0] != sweep:
            row = self._db.execute("SELECT plan FROM plans WHERE id = ?", (sweep,)).fetchone()
            self._first = sweep, number, None if row is None else one_set(row[0], number, count)
        return self._first[2] if self._first[1] == number else None

    def _sets_of_tasks(self, sweep: str) -> SetsOfTasks | None:
        """Return the sets of a sweep, kept for the next task; None if it is not in the index."""
        if self._sets is None or self._sets[0] != sweep:
            row = self._db.execute("SELECT plan FROM plans WHERE id = ?", (sweep,)).fetchone()
            if row is None:
                return None
            self._sets = sweep, msgspec.json.decode(row[0], type=SetsOfTasks)
        return self._sets[1]

    def several(self, runs: Sequence[str]) -> list[Entry]:
        """Return the given runs that are in the index, in order; tasks of a sweep are read together."""
        tasks: dict[str, dict[int, Entry]] = {}
        for run in runs:
            if task := ids.split_task(run):
                tasks.setdefault(task[0], {})
        for sweep in tasks:
            tasks[sweep] = self._all_tasks(sweep)
        whole = self._whole([run for run in runs if not ids.split_task(run)])
        found = []
        for run in runs:
            task = ids.split_task(run)
            entry = tasks[task[0]].get(task[1]) if task else whole.get(run)
            if entry is not None:
                found.append(entry)
        return found

    def _whole(self, runs: Sequence[str]) -> dict[str, Entry]:
        """Return runs that are not tasks, with one query for many."""
        found: dict[str, Entry] = {}
        for at in range(0, len(runs), MANY):
            some = runs[at : at + MANY]
            marks = ",".join("?" * len(some))
            rows = self._db.execute(f"SELECT id, run, status FROM records WHERE id IN ({marks})", some)
            found |= {run: entry_of((first, second)) for run, first, second in rows}
        return found

    def _all_tasks(self, sweep: str) -> dict[int, Entry]:
        whole, plan = self.get(sweep), self._sets_of_tasks(sweep)
        if whole is None or plan is None:
            return {}
        known, out = self.tasks(sweep), set(numbers(whole.status.submitted_tasks))
        places = self.item_places(sweep) if whole.run.race == sweep else {}
        return {
            number: Entry(
                placed(task_of(whole.run, plan, number), places.get(number)),
                known.get(number) or usual(whole.status, out=number in out),
            )
            for number in range(min(whole.run.tasks, len(plan.sets)))
        }

    def plan(self, run: str) -> Plan | None:
        """Return the plan of a run, which is needed to submit or retry it; None if it is not in the index."""
        row = self._db.execute("SELECT plan FROM plans WHERE id = ?", (run,)).fetchone()
        return None if row is None else msgspec.json.decode(row[0], type=Plan)

    def sets(self, sweep: str, key: str) -> list[dict[str, Any]]:
        """Return the parameters of each task of a sweep; empty if no task has the parameter `key`."""
        row = self._db.execute("SELECT plan FROM plans WHERE id = ?", (sweep,)).fetchone()
        if row is None or _json(key) + b":" not in row[0]:  # saves the decoding of a large plan
            return []
        return msgspec.json.decode(row[0], type=Sets).sets

    def retries(self, run: str) -> list[str]:
        """Return the runs created by retrying a run, oldest first."""
        return [row[0] for row in self._db.execute("SELECT run FROM retries WHERE of_run = ? ORDER BY run", (run,))]

    def retried_tasks(self, sweep: str) -> set[int]:
        """Return the tasks of a sweep that were retried."""
        whole, found = self.get(sweep), set[int]()
        query = "SELECT run, of_run FROM retries WHERE of_run = ?1 OR of_run GLOB ?1 || '.*'"
        for run, of_run in self._db.execute(query, (sweep,)).fetchall():
            if task := ids.split_task(of_run):
                found.add(task[1])
            elif (entry := self.get(run)) is None or whole is None:
                continue
            elif entry.run.retried:
                found.update(numbers(entry.run.retried))
            elif entry.run.tasks == whole.run.tasks:
                found.update(range(whole.run.tasks))
        return found

    def matching(self, prefix: str) -> list[str]:
        """Return ids that start with a text, or whose second part does, newest first."""
        listed = f"(id = ?1 OR id NOT IN ({HIDDEN}))"
        if not prefix:
            query = f"SELECT id FROM runs WHERE {listed} ORDER BY created DESC LIMIT 20"
            return [row[0] for row in self._db.execute(query, (prefix,))]
        # Ids sort by time. Each half reads a range of an index; LIKE would read all ids.
        query = (
            f"SELECT id, created FROM (SELECT id, created FROM runs WHERE id >= ?1 AND id < ?2 AND {listed}"
            " ORDER BY id DESC LIMIT 20)"
            f" UNION SELECT id, created FROM (SELECT id, created FROM runs WHERE {SECOND_PART} >= ?1"
            f" AND {SECOND_PART} < ?2 AND {listed} ORDER BY created DESC LIMIT 20) ORDER BY created DESC LIMIT 20"
        )
        return [row[0] for row in self._db.execute(query, (prefix, prefix + HIGHEST))]

    def names(self, prefix: str) -> list[str]:
        """Return the names of runs that start with a text, each once, newest first."""
        query = (
            "SELECT name FROM runs WHERE name != '' AND name >= ? AND name < ?"
            " GROUP BY name ORDER BY max(created) DESC LIMIT 20"
        )
        return [row[0] for row in self._db.execute(query, (prefix, prefix + HIGHEST))]

    def of_job(self, job: str, context: str = "") -> list[str]:
        """Return the runs, sweeps and tasks with this job, of one context or of all, newest first."""
        where, values = ("runs.context = ? AND ", (context,)) if context else ("", ())
        runs = (
            f"SELECT runs.id FROM records CROSS JOIN runs USING (id) WHERE {where} runs.id NOT IN ({HIDDEN}) AND"
            " json_extract(CAST(records.status AS TEXT), '$.job') = ? ORDER BY created DESC"
        )
        tasks = (
            f"SELECT sweep || '.' || task FROM tasks JOIN runs ON runs.id = sweep WHERE {where}"
            f" runs.id NOT IN ({HIDDEN}) AND json_extract(CAST(tasks.status AS TEXT), '$.job') = ?"
            " ORDER BY created DESC"
        )
        query = tasks if "_" in job else runs
        return [row[0] for row in self._db.execute(query, (*values, job))]

    def newest(
        self,
        limit: int | None = None,
        *,
        where: Mapping[str, Sequence[str]] | None = None,
        unfinished: bool = False,
        candidates: bool = False,
    ) -> Iterator[Entry]:
        """Return runs, newest first. `where` maps columns (context, project, name, state) to allowed values.

        `candidates`: those of races instead of the races.
        """
        clauses = [f"id NOT IN ({RACES if candidates else HIDDEN})", *(["NOT final"] if unfinished else [])]
        values: list[str] = []
        for column, allowed in (where or {}).items():
            if column not in ("context", "project", "name", "state"):
                raise LookupError(column)
            clauses.append(f"{column} IN ({','.join('?' * len(allowed))})")
            values += allowed
        runs = "runs INDEXED BY unfinished" if unfinished else "runs"  # that of all runs of a context is much larger
        query = f"SELECT records.run, status FROM {runs} JOIN records USING (id) WHERE {' AND '.join(clauses)}"
        rows = self._db.execute(
            f"{query} ORDER BY created DESC, id DESC LIMIT ?", (*values, -1 if limit is None else limit)
        )
        return (entry_of(row) for row in rows)

    def projects(self, names: Sequence[str]) -> list[str]:
        """Return the labels of the projects that have one of these labels or names."""
        return [label for label in self._labels() if label in names or layout.project_name(label) in names]

    def has_runs(self, context: str) -> bool:
        """Return whether the index has a run of a context."""
        return self._db.execute("SELECT 1 FROM runs WHERE context = ? LIMIT 1", (context,)).fetchone() is not None

    def contexts_of_unfinished(self) -> list[str]:
        query = f"SELECT DISTINCT context FROM runs WHERE NOT final AND id NOT IN ({RACES})"
        return [row[0] for row in self._db.execute(query)]

    def refs(self, context: str, also: Iterable[str] = (), ended: Collection[str] = ()) -> list[RunRef]:
        """Return the runs that a refresh of a context queries: unfinished submitted ones, and those of `also` there.

        So are those of `ended`, marked as such: their exit code is known.
        """
        query = (
            "SELECT id, folder, created, mark FROM runs INDEXED BY unfinished WHERE context = ? AND NOT final"
            f" AND state NOT IN {UNSUBMITTED} AND id NOT IN ({RACES})"
        )
        rows = self._db.execute(query, (context,)).fetchall()
        now = time.time()
        marked = [RunRef(run, folder, created, valid_mark(mark, now)) for run, folder, created, mark in rows]
        found = [self._with_tasks(ref) if ref.id[0] == ids.SWEEP else ref for ref in marked]
        known, final = {ref.id for ref in found}, set(ended)
        for run in (*also, *ended):
            row = self._db.execute(
                "SELECT id, folder, created FROM runs WHERE id = ? AND context = ? AND folder != ''"
                f" AND id NOT IN ({RACES})",
                (run, context),
            ).fetchone()
            if row is not None and run not in known:
                _id, folder, created = row
                found.append(RunRef(run, folder, created, ended=run in final))
        return found

    def outbox(self, context: str) -> list[str]:
        """Return runs that are possibly not submitted yet and sweeps with pending tasks, in order of creation."""
        pending = "SELECT pending FROM sweeps WHERE sweeps.id = runs.id"
        query = (
            "SELECT id FROM runs INDEXED BY unfinished WHERE context = ? AND NOT final"
            f" AND coalesce(({pending}), state IN {UNSUBMITTED}) AND id NOT IN ({RACES}) ORDER BY created, id"
        )
        return [row[0] for row in self._db.execute(query, (context,))]

    def is_in_outbox(self, run: str) -> bool:
        """Return whether `outbox` lists a run now."""
        pending = "SELECT pending FROM sweeps WHERE sweeps.id = runs.id"
        query = f"SELECT 1 FROM runs WHERE id = ? AND NOT final AND coalesce(({pending}), state IN {UNSUBMITTED})"
        query += f" AND id NOT IN ({RACES})"
        return self._db.execute(query, (run,)).fetchone() is not None

    def building(self, context: str) -> list[str]:
        """Return unfinished runs whose jobs are held until their environment is built."""
        query = (
            "SELECT id FROM runs INDEXED BY unfinished JOIN records USING (id) WHERE context = ? AND NOT final"
            f" AND instr(CAST(status AS TEXT), '\"building\":true') AND id NOT IN ({RACES})"
        )
        return [row[0] for row in self._db.execute(query, (context,))]

    def cancels(self, context: str) -> list[str]:
        """Return runs and tasks whose cancellation was requested but not yet sent to the site."""
        query = "SELECT id FROM runs INDEXED BY unfinished WHERE context = ? AND NOT final AND cancel"
        query += f" AND id NOT IN ({RACES})"
        found = [row[0] for row in self._db.execute(query, (context,))]
        query = (
            "SELECT sweep || '.' || task FROM sweeps CROSS JOIN runs USING (id)"
            f" CROSS JOIN tasks INDEXED BY task_states ON sweep = id WHERE context = ? AND id NOT IN ({RACES})"
            " AND NOT runs.final"
            f" AND tasks.state IN ({','.join('?' * len(OPEN))})"
            " AND json_extract(CAST(status AS TEXT), '$.cancel_requested')"
        )
        return found + [row[0] for row in self._db.execute(query, (context, *OPEN))]

    def change(
        self,
        runs: Iterable[str],
        how: Callable[[str, Status], Status],
        mark: Callable[[str, Status], str] = lambda _run, _status: "",
    ) -> dict[str, Status]:
        """Replace each status by `how` of the current one, and set new marks. Return the statuses that changed."""
        changed: dict[str, Status] = {}
        earlier: dict[str, Status] = {}
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
                    changed[run], earlier[run] = after, before
                self._db.execute("UPDATE records SET status = ? WHERE id = ?", (_json(after), run))
                values = (after.state, after.state in FINAL, after.cancel_requested, known_by, run)
                self._db.execute("UPDATE runs SET state = ?, final = ?, cancel = ?, mark = ? WHERE id = ?", values)
                if after.state != before.state:
                    self._to_mirror(run, after)
        for run, before in earlier.items():
            self._keep_file(run, before, changed[run])
        return changed


def _make_private(file: str) -> None:
    """Create an empty file and its folders, private to the owner, if absent. SQLite copies its mode to its other files.

    The umask is not used: it applies to the whole process, and this may be a thread of the user's program. An existing
    file is not opened: closing it would release the locks that other threads hold on it.
    """
    if os.path.exists(file):
        return
    absent, folder = [], os.path.dirname(os.path.abspath(file))
    while not os.path.isdir(folder):
        absent.append(folder)
        folder = os.path.dirname(folder)
    for each in reversed(absent):
        with suppress(FileExistsError):
            os.mkdir(each, 0o700)
    aside = f"{file}.{os.getpid()}.{threading.get_ident()}"
    os.close(os.open(aside, os.O_RDWR | os.O_CREAT, 0o600))
    with suppress(FileExistsError):
        try:
            os.link(aside, file)
        except PermissionError:  # a file system without hard links
            os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    os.unlink(aside)


def _check_not_emptied(file: str) -> None:
    """Raise RefusedError if a file that has been in use is empty. Otherwise all runs would silently disappear."""
    try:
        found = os.stat(file)
    except OSError:
        return
    in_use = any(os.path.isdir(f"{os.path.dirname(os.path.abspath(file))}/{name}") for name in ("outbox", "code"))
    if not found.st_size and in_use and time.time() - found.st_mtime > EMPTY and not os.path.exists(f"{file}-wal"):
        raise damaged(file, "it is empty")


def _json(value: Any) -> bytes:
    return msgspec.json.encode(value)
