"""The tasks of a sweep in the index: which are open, which are pending, and what a query costs."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import msgspec
import pytest

from yurt.model import ids, tasks
from yurt.model.run import Run, State, Status
from yurt.store import Store
from yurt.store.schema import LATER, SCHEMA
from yurt.store.tasks import with_held

SWEEP = "s" + ids.make(1_800_000_000, 7919)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "yurt.db"))


def add_submitted(store: Store, sets: int) -> None:
    """Add a sweep whose tasks are all submitted."""
    run = Run(
        id=SWEEP,
        context="alpha",
        context_type="slurm",
        project="p-0000",
        source="/src",
        created=1.0,
        command=["true"],
        folder=f"/far/sweeps/{SWEEP}",
        tasks=sets,
    )
    store.add(run, Status(state="submitting"))
    store.change_tasks(
        SWEEP, whole=lambda status: msgspec.structs.replace(status, state="queued", submitted_tasks=f"0-{sets - 1}")
    )


def test_open_tasks_follow_every_change(store: Store) -> None:
    add_submitted(store, 40)
    known: dict[int, State] = {}
    chance = random.Random(1)
    states: list[State] = ["queued", "running", "waiting", "completed", "failed", "lost"]
    for _turn in range(60):
        some = {number: chance.choice(states) for number in chance.sample(range(40), 5)}
        store.change_tasks(SWEEP, some, lambda number, status: msgspec.structs.replace(status, state=some[number]))  # noqa: B023
        known |= some
        ended = {number for number, state in known.items() if state in ("completed", "failed", "lost")}
        waiting = {number for number, state in known.items() if state == "waiting"}
        (ref,) = store.refs("alpha")
        assert ref.open == tasks.ranges(set(range(40)) - ended - waiting)
        assert set(tasks.numbers(ref.begun)) >= {number for number, state in known.items() if state == "running"}
        assert not set(tasks.numbers(ref.begun)) & (ended | waiting)
        assert [number for number, _start in store.pending_tasks(SWEEP)] == sorted(waiting)


def test_held_tasks(store: Store) -> None:
    """Pending tasks have no row: the sweep says that they are held, until none is pending."""
    add_submitted(store, 3)
    why = "held; release it with `yurt release`"
    _tasks, whole = store.change_tasks(SWEEP, whole=lambda status: with_held(status, why))
    assert (whole.state, whole.reason, whole.task_states) == ("held", why, {"held": 3})
    (ref,) = store.refs("alpha")
    assert (ref.open, ref.begun, ref.held) == ("0-2", "", why)
    task = store.task_status(SWEEP, 1, whole)
    assert (task.state, task.reason) == ("held", why)
    _tasks, whole = store.change_tasks(
        SWEEP, [0], lambda _number, status: msgspec.structs.replace(status, state="running")
    )
    assert (whole.state, whole.reason, whole.task_states) == ("running", why, {"running": 1, "held": 2})
    released = with_held(whole, "")
    assert (released.held, released.reason) == ("", "")
    ended = Status(state="cancelled", ended=2.0)
    _tasks, whole = store.change_tasks(SWEEP, range(3), lambda _number, _status: ended)
    assert (whole.state, whole.reason, whole.held) == ("cancelled", "", "")
    assert with_held(Status(reason="the queue is full"), why).reason == "the queue is full"


def test_a_refresh_reads_no_finished_task(store: Store) -> None:
    add_submitted(store, 2000)
    store.change_tasks(SWEEP, range(1, 2000), lambda _number, status: msgspec.structs.replace(status, state="failed"))
    steps: list[int] = []
    store._db.set_progress_handler(lambda: steps.append(1), 100)
    (ref,) = store.refs("alpha")
    assert not store.cancels("alpha") and not store.outbox("alpha")
    store._db.set_progress_handler(None, 0)
    assert ref.open == "0"
    assert len(steps) < 20, f"{len(steps)} hundred steps of SQLite for one open task"


def test_an_older_index_records_finished_tasks(tmp_path: Path) -> None:
    before = LATER[:6]
    old = sqlite3.connect(tmp_path / "yurt.db")
    for text in [SCHEMA, *before]:
        old.executescript(text)
    old.execute(f"PRAGMA user_version = {1 + len(before)}")
    old.execute("INSERT INTO sweeps VALUES (?, 5, 0)", (SWEEP,))
    values = ("alpha", "p", "", "/far", "running", 0, 0, "")
    old.execute("INSERT INTO runs VALUES (?, 1, ?, ?, ?, ?, ?, ?, ?, ?)", (SWEEP, *values))
    old.execute(
        "INSERT INTO records VALUES (?, '{}', ?)",
        (SWEEP, msgspec.json.encode(Status(state="running", submitted_tasks="0-4"))),
    )
    for number in (1, 2, 4):
        old.execute("INSERT INTO tasks VALUES (?, ?, 'failed', 1, '{}')", (SWEEP, number))
    old.commit()
    old.close()
    (ref,) = Store(str(tmp_path / "yurt.db")).refs("alpha")
    assert ref.open == "0,3"


def test_a_requested_cancellation_of_a_task_is_found(store: Store) -> None:
    add_submitted(store, 4)
    store.change_tasks(SWEEP, [2], lambda _number, status: msgspec.structs.replace(status, cancel_requested=True))
    assert store.cancels("alpha") == [f"{SWEEP}.2"] and store.cancels("beta") == []
