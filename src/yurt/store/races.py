"""Races: which runs are candidates of which race, who holds which item, and which races are over.

A race is a run of its own in the index, without a job; its candidates are hidden from lists.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import msgspec

from yurt.model import ids, layout
from yurt.model.race import ONLY, item_of, task_of
from yurt.model.run import Plan, Race, Run, Status

if TYPE_CHECKING:
    from yurt.store.tasks import Entry

HIDDEN = "SELECT races.run FROM races CROSS JOIN runs AS raced ON raced.id = races.race"
"""Candidates of races that this machine has. The order of a cross join is fixed: races are few, runs are many."""

RACES = "SELECT race FROM races UNION SELECT race FROM open_races"
"""Races themselves, which have no job of their own."""


class Races:
    """The part of the index about races."""

    _db: sqlite3.Connection

    def _transaction(self, *, durable: bool = False) -> AbstractContextManager[None]:
        raise NotImplementedError

    def _add(self, run: Run, status: Status, plan: Plan | None) -> None:
        raise NotImplementedError

    def _add_draft(self, run: str, draft: bytes) -> None:
        raise NotImplementedError

    def _note_made(self, run: str) -> None:
        raise NotImplementedError

    def _write_race(self, race: str) -> None:
        raise NotImplementedError

    def _remove_file(self, name: str) -> None:
        raise NotImplementedError

    def add_race(self, plan: Plan, status: Status) -> None:
        """Add a race, still without candidates."""
        with self._transaction(durable=True):
            self._add(plan.run, status, plan)
            self._note_made(plan.run.id)
            self._db.execute("INSERT INTO open_races VALUES (?)", (plan.run.id,))

    def add_candidates(
        self,
        race: str,
        plans: Sequence[Plan],
        status: Status,
        drafts: Mapping[str, bytes] | None = None,
        freed: Collection[int] = (),
    ) -> bool:
        """Add candidates of a race, all or none; return False if the race is over, such as cancelled in between.

        `drafts`, by run: see `Drafts.settle`. `freed`: items that nobody holds any more.
        """
        with self._transaction(durable=True):
            if self._db.execute("SELECT 1 FROM runs WHERE id = ? AND final", (race,)).fetchone():
                return False
            for item in freed:
                self.forget_holder(race, item)
            for plan in plans:
                self._add(plan.run, status, plan)
                self._add_draft(plan.run.id, (drafts or {}).get(plan.run.id, b""))
        self._write_race(race)
        return True

    def _add_candidate(self, run: Run) -> None:
        if run.race and run.race != run.id:
            self._db.execute("INSERT OR IGNORE INTO races VALUES (?, ?)", (run.id, run.race))

    def open_races(self) -> list[str]:
        """Return the races of this machine that are not over: something is left to do."""
        return [row[0] for row in self._db.execute("SELECT race FROM open_races ORDER BY race")]

    def close_race(self, race: str) -> None:
        self._db.execute("DELETE FROM open_races WHERE race = ?", (race,))
        self._remove_file(race)

    def reopen_race(self, race: str) -> None:
        self._db.execute("INSERT OR IGNORE INTO open_races VALUES (?)", (race,))

    def candidates(self, race: str) -> list[str]:
        """Return the candidates of a race, in the order in which they were named."""
        return [row[0] for row in self._db.execute("SELECT run FROM races WHERE race = ? ORDER BY rowid", (race,))]

    def rivals(self, contexts: Sequence[str]) -> list[str]:
        """Return the other contexts of open races that have a candidate on one of these contexts."""
        marks = ",".join("?" * len(contexts))
        query = (
            "SELECT DISTINCT other.context FROM races JOIN runs ON runs.id = races.run"
            " JOIN races AS beside ON beside.race = races.race JOIN runs AS other ON other.id = beside.run"
            f" WHERE races.race IN (SELECT race FROM open_races) AND runs.context IN ({marks}) AND NOT other.final"
        )
        return [row[0] for row in self._db.execute(query, tuple(contexts)) if row[0] not in contexts]

    def holders(self, race: str) -> dict[int, str]:
        """Return who holds which item of a race, as far as this machine knows."""
        return dict(self._db.execute("SELECT item, holder FROM race_items WHERE race = ?", (race,)).fetchall())

    def note_holders(self, race: str, holders: Mapping[int, str]) -> None:
        with self._transaction():
            rows = [(race, item, holder) for item, holder in holders.items()]
            self._db.executemany("INSERT OR REPLACE INTO race_items VALUES (?, ?, ?)", rows)

    def forget_holder(self, race: str, item: int) -> None:
        self._db.execute("DELETE FROM race_items WHERE race = ? AND item = ?", (race, item))

    def set_race(self, run: Run, status: Status) -> None:
        """Replace the record of a race that is not a sweep: it shows its winner."""
        with self._transaction():
            row = self._db.execute("SELECT run, status FROM records WHERE id = ?", (run.id,)).fetchone()
            new = (msgspec.json.encode(run), msgspec.json.encode(status))
            if row is None or tuple(row) == new:
                return
            before = msgspec.json.decode(row[1], type=Status)
            self._db.execute("UPDATE records SET run = ?, status = ? WHERE id = ?", (*new, run.id))
            columns = (run.context, run.folder, status.state, status.final, run.id)
            self._db.execute("UPDATE runs SET context = ?, folder = ?, state = ?, final = ? WHERE id = ?", columns)
            if status.state != before.state:
                self._to_mirror(run.id, status)

    def set_race_tasks(self, race: str, statuses: Mapping[int, Status], submitted: str) -> Status:
        """Set the statuses of the items of a raced sweep; return that of the sweep."""
        _changed, whole = self.change_tasks(
            race,
            statuses,
            lambda item, _status: statuses[item],
            lambda status: msgspec.structs.replace(status, submitted_tasks=submitted, attempts=1, reason=""),
        )
        holder = "SELECT context FROM runs JOIN race_items ON runs.id = holder"
        self._db.execute(
            f"UPDATE to_mirror SET context = ({holder} WHERE race = ?1 AND run = race || '.' || item)"
            f" WHERE run GLOB ?1 || '.*' AND EXISTS ({holder} WHERE race = ?1 AND run = race || '.' || item)",
            (race,),
        )
        return whole

    def race_name(self, run: str) -> str:
        """Return what a candidate, or a task of one, is in its race, if it won; else an empty text."""
        whole, task = ids.split_task(run) or (run, None)
        row = self._db.execute("SELECT race FROM races WHERE run = ?", (whole,)).fetchone()
        if row is None:
            return ""
        if task is None:
            return row[0] if self.holders(row[0]).get(ONLY) == run else ""
        race, plan = row[0], self.plan(whole)
        if plan is None or plan.race is None:
            return ""
        item = item_of(plan.race, task, plan.run.tasks)
        return ids.task(race, item) if self.holders(race).get(item) == whole else ""

    def winner_name(self, run: str) -> str:
        """Return the candidate, or the task of one, that won a race or an item of it; else an empty text."""
        whole, item = ids.split_task(run) or (run, None)
        row = self._db.execute(
            "SELECT holder FROM race_items WHERE race = ? AND item = ?", (whole, ONLY if item is None else item)
        ).fetchone()
        if row is None or item is None:
            return row[0] if row else ""
        plan = self.plan(row[0])
        return "" if plan is None or plan.race is None else ids.task(row[0], task_of(plan.race, item, plan.run.tasks))

    def item_places(self, race: str) -> dict[int, Run]:
        """Return the tasks, as runs of their candidates, that hold the items of a raced sweep."""
        found: dict[int, Run] = {}
        sweeps: dict[str, tuple[Run, Race]] = {}
        for item, holder in self.holders(race).items():
            if holder not in sweeps:
                entry, plan = self.get(holder), self.plan(holder)
                if entry is None or plan is None or plan.race is None:
                    continue
                sweeps[holder] = entry.run, plan.race
            run, own = sweeps[holder]
            folder = layout.task(run.folder, task_of(own, item, run.tasks)) if run.folder else ""
            found[item] = msgspec.structs.replace(run, folder=folder)
        return found

    def change_tasks(
        self,
        sweep: str,
        numbers: Iterable[int] = (),
        how: Callable[[int, Status], Status] = lambda _number, status: status,
        whole: Callable[[Status], Status] = lambda status: status,
    ) -> tuple[dict[int, Status], Status]:
        raise NotImplementedError

    def get(self, run: str) -> Entry | None:
        raise NotImplementedError

    def plan(self, run: str) -> Plan | None:
        raise NotImplementedError

    def _to_mirror(self, run: str, status: Status) -> None:
        raise NotImplementedError

    def _remove_race(self, run: str) -> None:
        """Remove what the index has about a race, and its candidates."""
        for each in self.candidates(run):
            self._remove(each)
        self._db.execute("DELETE FROM races WHERE race = ?1 OR run = ?1", (run,))
        for table in ("open_races", "race_items"):
            self._db.execute(f"DELETE FROM {table} WHERE race = ?", (run,))

    def _remove(self, run: str) -> None:
        raise NotImplementedError


def placed(run: Run, winner: Run | None) -> Run:
    """Return a race, or an item of one, with the folder and the settings of its winner."""
    if winner is None:
        return run
    return msgspec.structs.replace(
        run,
        context=winner.context,
        context_type=winner.context_type,
        folder=winner.folder,
        resources=winner.resources,
        settings=winner.settings,
        env=winner.env,
        user=winner.user,
    )
