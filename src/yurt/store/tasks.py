"""The tasks of sweeps. A task without news since its submission has no row, so that large sweeps stay cheap."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import msgspec

from yurt.model import ids, layout, params, tasks
from yurt.model.digest import digest
from yurt.model.run import FINAL, Placement, Run, RunRef, State, Status
from yurt.model.state import ATTEMPTS, BUILDING
from yurt.model.status_answer import expiring
from yurt.store.one_set import OneSet
from yurt.store.races import HIDDEN, RACES

OPEN = tuple(state for state in State.__args__ if state not in FINAL)  # type: ignore[attr-defined]
ACTIVE = tuple(state for state in OPEN if state != "waiting")
"""States of tasks that a refresh may update."""


NOT_SUBMITTED = "FROM tasks WHERE sweep = ? AND state IN ('cancelled', 'waiting')"
"""Tasks that have a row but are possibly not submitted: cancelled before submission, or to be started again."""


class Entry(msgspec.Struct, frozen=True):
    """A run and its status."""

    run: Run
    status: Status

    @property
    def placements(self) -> list[Placement]:
        """Where the run is executed; always one place."""
        run = self.run
        return [
            Placement(
                context=run.context,
                context_type=run.context_type,
                folder=run.folder,
                resources=run.resources,
                job=self.status.job,
            )
        ]


def _mark(status: bytes) -> str:
    return digest(status.decode()).hex()


def entry_of(row: tuple[bytes, bytes]) -> Entry:
    return Entry(msgspec.json.decode(row[0], type=Run), msgspec.json.decode(row[1], type=Status))


class Tasks:
    """The part of the index about tasks."""

    _db: sqlite3.Connection

    def _transaction(self, *, durable: bool = False) -> AbstractContextManager[None]:
        raise NotImplementedError

    def _to_mirror(self, run: str, status: Status) -> None:
        raise NotImplementedError

    def _keep_file(self, run: str, before: Status | None, after: Status) -> None:
        raise NotImplementedError

    def tasks(self, sweep: str) -> dict[int, Status]:
        """Return the statuses of tasks by number, without tasks that have no row."""
        rows = self._db.execute("SELECT task, status FROM tasks WHERE sweep = ?", (sweep,))
        return {row[0]: msgspec.json.decode(row[1], type=Status) for row in rows}

    def task_states(self, sweep: str) -> dict[int, str]:
        """Return the states of tasks by number, without tasks that have no row."""
        return dict(self._db.execute("SELECT task, state FROM tasks WHERE sweep = ?", (sweep,)).fetchall())

    def task_status(self, sweep: str, number: int, whole: Status) -> Status:
        row = self._db.execute("SELECT status FROM tasks WHERE sweep = ? AND task = ?", (sweep, number)).fetchone()
        if row is not None:
            return msgspec.json.decode(row[0], type=Status)
        return usual(whole, out=number in tasks.Within(whole.submitted_tasks))

    def _with_tasks(self, ref: RunRef) -> RunRef:
        """Add the open tasks of a sweep to its reference, for a status query."""
        row = self._db.execute("SELECT over FROM sweeps WHERE id = ?", (ref.id,)).fetchone()
        if row is None:
            return ref
        (text,) = self._db.execute("SELECT status FROM records WHERE id = ?", (ref.id,)).fetchone()
        whole = msgspec.json.decode(text, type=Status)
        open_tasks = tasks.without(
            tasks.without(whole.submitted_tasks, row[0]), tasks.ranges(self.tasks_in(ref.id, ("waiting",)))
        )
        begun = tasks.ranges(self.tasks_in(ref.id, ACTIVE))
        offsets = ",".join(whole.offsets) or "0"
        mark = ref.mark if ref.mark == _mark(text) else ""
        return msgspec.structs.replace(ref, open=open_tasks, begun=begun, offsets=offsets, held=whole.held, mark=mark)

    def mark_sweep(self, sweep: str, until: float | None) -> None:
        """Note until when the last answer of its site changes nothing about a sweep, as long as its status stays."""
        (text,) = self._db.execute("SELECT status FROM records WHERE id = ?", (sweep,)).fetchone()
        mark = "" if until is None else expiring(_mark(text), until) if until else _mark(text)
        self._db.execute("UPDATE runs SET mark = ? WHERE id = ?", (mark, sweep))

    def tasks_in(self, sweep: str, states: Sequence[State]) -> list[int]:
        """Return the tasks whose row has one of these states."""
        query = f"SELECT task FROM tasks WHERE sweep = ? AND state IN ({','.join('?' * len(states))})"
        return [row[0] for row in self._db.execute(query, (sweep, *states))]

    def pending_tasks(self, sweep: str) -> list[tuple[int, int]]:
        """Return the tasks of a sweep to submit, each with its start number."""
        (text,) = self._db.execute("SELECT status FROM records WHERE id = ?", (sweep,)).fetchone()
        (size,) = self._db.execute("SELECT size FROM sweeps WHERE id = ?", (sweep,)).fetchone()
        whole = msgspec.json.decode(text, type=Status)
        unsent = "" if whole.other_machine else tasks.without(f"0-{size - 1}", whole.submitted_tasks)
        found = dict.fromkeys(tasks.numbers(unsent), 1)
        for number, state, text in self._db.execute(f"SELECT task, state, status {NOT_SUBMITTED}", (sweep,)):
            if state == "waiting" and not (status := msgspec.json.decode(text, type=Status)).cancel_requested:
                found[number] = status.start
            else:
                found.pop(number, None)
        return sorted(found.items())

    def change_tasks(
        self,
        sweep: str,
        numbers: Iterable[int] = (),
        how: Callable[[int, Status], Status] = lambda _number, status: status,
        whole: Callable[[Status], Status] = lambda status: status,
    ) -> tuple[dict[int, Status], Status]:
        """Replace the statuses of tasks by `how`, and that of their sweep by `whole`, of the current ones.

        Return the tasks that changed, and the new status of the sweep.
        """
        changed: dict[int, Status] = {}
        with self._transaction():
            (text,) = self._db.execute("SELECT status FROM records WHERE id = ?", (sweep,)).fetchone()
            before_all = msgspec.json.decode(text, type=Status)
            after_all = whole(before_all)
            out = tasks.Within(after_all.submitted_tasks)
            ended, reopened = [], []
            for number in numbers:
                query = "SELECT status FROM tasks WHERE sweep = ? AND task = ?"
                row = self._db.execute(query, (sweep, number)).fetchone()
                as_usual = usual(after_all, out=number in out)
                before = as_usual if row is None else msgspec.json.decode(row[0], type=Status)
                after = how(number, before)
                if after != before:
                    changed[number] = after
                    if after.final:
                        ended.append(number)
                    elif before.final:
                        reopened.append(number)
                    self._set_task(sweep, number, after)
            after_all = self._set_whole(sweep, before_all, after_all, changed.values())
            self._note_finished(sweep, ended, reopened)
        self._keep_file(sweep, before_all, after_all)
        return changed, after_all

    def sent_elsewhere(self, context: str) -> list[Entry]:
        """Return the sweeps of which another machine has not submitted all tasks."""
        joined = "runs INDEXED BY unfinished JOIN sweeps USING (id) JOIN records USING (id)"
        query = f"SELECT run, status, pending FROM {joined} WHERE context = ? AND NOT final AND id NOT IN ({RACES})"
        found = [(entry_of(row[:2]), row[2]) for row in self._db.execute(query, (context,))]
        return [entry for entry, ours in found if entry.status.task_states.get("waiting", 0) > ours]

    def _add_tasks(self, sweep: str, statuses: Mapping[int, Status], whole: Status) -> None:
        """Add the tasks of a sweep that was found on its site."""
        for number, status in statuses.items():
            self._set_task(sweep, number, status)
        self._set_whole(sweep, Status(), whole, statuses.values())
        self._note_finished(sweep, [number for number, status in statuses.items() if status.final], [])

    def _set_task(self, sweep: str, number: int, status: Status) -> None:
        values = (sweep, number, status.state, status.state in FINAL, msgspec.json.encode(status))
        self._db.execute("INSERT OR REPLACE INTO tasks VALUES (?, ?, ?, ?, ?)", values)
        if status.final and status.started:
            self._db.execute(
                "INSERT OR REPLACE INTO to_mirror SELECT ?, context, ?, 0, 0 FROM runs WHERE id = ?"
                f" AND id NOT IN ({HIDDEN})",
                (ids.task(sweep, number), time.time(), sweep),
            )

    def _set_whole(self, sweep: str, before: Status, after: Status, changed: Iterable[Status]) -> Status:
        """Set the status of a sweep; its state is derived from its tasks."""
        after = self._tallied(sweep, after, changed)
        self._db.execute("UPDATE records SET status = ? WHERE id = ?", (msgspec.json.encode(after), sweep))
        columns = (after.state, after.final, after.cancel_requested, sweep)
        self._db.execute("UPDATE runs SET state = ?, final = ?, cancel = ? WHERE id = ?", columns)
        waiting = after.task_states.get("waiting", 0)
        if waiting and after.other_machine:
            query = "SELECT count(*) FROM tasks WHERE sweep = ? AND state = 'waiting'"
            (waiting,) = self._db.execute(query, (sweep,)).fetchone()
        self._db.execute("UPDATE sweeps SET pending = ? WHERE id = ?", (0 if after.final else waiting, sweep))
        if after.state != before.state:
            self._to_mirror(sweep, after)
        return after

    def _note_finished(self, sweep: str, ended: Sequence[int], reopened: Sequence[int]) -> None:
        """Record which tasks finished, and which are open again: a refresh skips finished ones."""
        if ended or reopened:
            (over,) = self._db.execute("SELECT over FROM sweeps WHERE id = ?", (sweep,)).fetchone()
            over = tasks.without(tasks.with_more(over, ended), tasks.ranges(reopened))
            self._db.execute("UPDATE sweeps SET over = ? WHERE id = ?", (over, sweep))

    def _tallied(self, sweep: str, whole: Status, changed: Iterable[Status]) -> Status:
        """Derive a sweep's status from its tasks. It starts with the first task and ends with the last.

        The reason of a failed sweep is the most frequent one of its failed tasks.
        """
        (count,) = self._db.execute("SELECT size FROM sweeps WHERE id = ?", (sweep,)).fetchone()
        query = "SELECT state, count(*) FROM tasks WHERE sweep = ? GROUP BY state"
        tally = dict(self._db.execute(query, (sweep,)).fetchall())
        out = tasks.count(whole.submitted_tasks)
        queued, unsubmitted = out - sum(tally.values()), count - out
        if unsubmitted:  # some of these may have a row: cancelled before submission, or to be started again
            submitted = tasks.Within(whole.submitted_tasks)
            with_row = sum(
                row[0] not in submitted for row in self._db.execute(f"SELECT task {NOT_SUBMITTED}", (sweep,))
            )
            queued, unsubmitted = queued + with_row, unsubmitted - with_row
        whole = with_held(whole, whole.held if queued > 0 else "")
        if queued > 0:
            pending = "held" if whole.held else "queued"
            tally[pending] = tally.get(pending, 0) + queued
        if unsubmitted > 0:
            rest = whole.state if whole.state in FINAL else "waiting"
            tally[rest] = tally.get(rest, 0) + unsubmitted
        state = state_of(tally, whole)
        starts = [each.started for each in (whole, *changed) if each.started is not None]
        ended = (whole.ended or self._last_end(sweep)) if state in FINAL else None
        built = whole.reason.startswith(BUILDING) and state not in ("waiting", "held", "queued")
        reason = "" if built or (whole.state in FINAL and state not in FINAL) else whole.reason
        cause = ""
        if state == "failed" and unsubmitted <= 0:
            main, cause = self._main_reasons(sweep)
            reason = main or reason
        return msgspec.structs.replace(
            whole,
            task_states=tally,
            state=state,
            reason=reason,
            cause=cause,
            started=min(starts, default=None),
            ended=ended,
        )

    def _main_reasons(self, sweep: str) -> tuple[str, str]:
        """Return the most frequent reason of failed tasks, and their most frequent cause if that says more."""
        query = (
            "SELECT state, json_extract(CAST(status AS TEXT), '$.reason', '$.cause')"
            " FROM tasks WHERE sweep = ? AND final"
        )
        rows = [(state, *msgspec.json.decode(each)) for state, each in self._db.execute(query, (sweep,))]
        from yurt.model.tally import main_reason

        reason = main_reason((state, reason) for state, reason, _cause in rows)
        cause = main_reason((state, cause or reason) for state, reason, cause in rows)
        return reason, "" if cause == reason else cause

    def _last_end(self, sweep: str) -> float | None:
        query = "SELECT max(json_extract(CAST(status AS TEXT), '$.ended')) FROM tasks WHERE sweep = ?"
        last: float | None = self._db.execute(query, (sweep,)).fetchone()[0]
        return last


def usual(whole: Status, *, out: bool) -> Status:
    """Return the status of a task that has no row."""
    if not out:
        return Status(state="waiting" if whole.state not in FINAL else whole.state)
    return Status(
        state="held" if whole.held else "queued",
        reason=whole.held,
        submitted=whole.submitted,
        attempts=ATTEMPTS if whole.other_machine else 1,
    )


def with_held(whole: Status, why: str) -> Status:
    """Return the status of a sweep whose pending tasks are held; with an empty reason, of one whose tasks are not."""
    reason = why if whole.reason in ("", whole.held) else whole.reason
    return msgspec.structs.replace(whole, held=why, reason=reason)


def state_of(tally: Mapping[str, int], whole: Status) -> State:
    """Return the state of a sweep from the number of its tasks by state."""
    alive: tuple[State, ...] = ("running", "starting", "requeued", "queued", "held", "unknown")
    for state in alive:
        if tally.get(state):
            return state
    if tally.get("waiting") or not tally:
        return "waiting" if whole.state not in FINAL else whole.state
    for state in ("failed", "node_failed", "out_of_memory", "timeout", "lost", "cancelled"):
        if tally.get(state):
            return "failed" if state != "cancelled" else "cancelled"
    return "completed"


class SetsOfTasks(msgspec.Struct, frozen=True):
    """The part of a plan that tells its tasks apart. A set is decoded when it is needed: there may be 100,000."""

    sets: list[msgspec.Raw] = []
    arguments: bool = True
    calls: bool = False


def task_of(run: Run, plan: SetsOfTasks | OneSet, number: int) -> Run:
    """Return one task of a sweep as a run, with the command that it runs."""
    text = plan.own if isinstance(plan, OneSet) else plan.sets[number]
    command, own = run.command, msgspec.json.decode(text, type=dict[str, Any])
    if not plan.calls:
        command = params.task_command(command, number, own, passed=plan.arguments)
    return msgspec.structs.replace(
        run,
        id=ids.task(run.id, number),
        folder=layout.task(run.folder, number) if run.folder else "",
        command=command,
        params={**run.params, **own},
        tasks=0,
        sweep=run.id,
        task=number,
    )
