"""An index, a run.json and a plan.json of an older yurt are read completely."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import msgspec

from yurt.model.run import Resources, RestartPolicy
from yurt.store import Store, older
from yurt.store.schema import VERSION

INDEX = Path(__file__).parent.parent / "fixtures" / "index-8.sql"
"""Made by the last yurt with version 8: completed, failed, dependent and running runs; a sweep and its retry."""


def opened(folder: Path) -> tuple[Store, dict[str, tuple[dict[str, Any], dict[str, Any]]]]:
    """That index, opened by this yurt; and its original records."""
    file = folder / "yurt.db"
    with sqlite3.connect(file) as db:
        db.executescript(INDEX.read_text())
    rows = db.execute("SELECT id, run, status FROM records").fetchall()
    db.close()
    return Store(str(file)), {row[0]: (json.loads(row[1]), json.loads(row[2])) for row in rows}


def test_an_index_of_version_8(tmp_path: Path) -> None:
    store, before = opened(tmp_path)
    assert len(before) == 7
    for run_id, (run, status) in before.items():
        entry, plan = store.get(run_id), store.plan(run_id)
        assert entry is not None and plan is not None and plan.run == entry.run
        made, now = entry.run, entry.status
        assert (made.context_type, made.tasks, made.user, made.yurt_version) == ("local", run["sets"], "ann", "0.1.0")
        assert made.resources == Resources(**run["asked"])
        again = run["again"]
        assert made.restart_policy == RestartPolicy(
            max_requeues=again["requeues"],
            signal_before=again["before"],
            retries=again["retries"],
            retry_errors=again["errors"],
        )
        assert made.code.dirty == run["code"]["changed"] and made.code.tree == run["code"]["tree"]
        same = set(run) - set(older.RUN) - {"code"}
        assert {key: run[key] for key in same} == {key: msgspec.to_builtins(getattr(made, key)) for key in same}
        new = {
            "listed_at": None,
            "unsure_since": None,
            "building": False,
            "held": "",
            "result_bytes": None,
            "result_files": None,
            "usage": None,
            "cause": "",
        }
        assert {older.STATUS.get(key, key): each for key, each in status.items()} | new == msgspec.to_builtins(now)
    assert store.outbox("local") == []
    running = [each.id for each in store.refs("local")]
    assert len(running) == 2
    (sweep,) = (run_id for run_id, (run, _status) in before.items() if run["sets"] == 3)
    assert {number: each.state for number, each in store.tasks(sweep).items()} == {
        0: "completed",
        1: "failed",
        2: "completed",
    }
    assert [store.several([f"{sweep}.1"])[0].run.params, store.several([sweep])[0].status.task_states] == [
        {"lr": 0.2},
        {"completed": 2, "failed": 1},
    ]


def test_it_is_migrated_once(tmp_path: Path) -> None:
    store, before = opened(tmp_path)
    entries = [store.get(run) for run in before]
    with store.twin() as again:
        assert [again.get(run) for run in before] == entries
    with sqlite3.connect(tmp_path / "yurt.db") as db:
        assert db.execute("PRAGMA user_version").fetchone() == (VERSION,)
    db.close()


def test_files_of_an_older_run(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "old.db") as db:
        db.executescript(INDEX.read_text())
        rows = db.execute("SELECT run, plan FROM records JOIN plans USING (id)").fetchall()
    db.close()
    (tmp_path / "new").mkdir()
    store, _before = opened(tmp_path / "new")
    for run, plan in rows:
        made = older.read_run(run)
        assert store.plan(made.id) == older.read_plan(plan)
        entry = store.get(made.id)
        assert entry is not None and entry.run == made
        assert older.read_run(msgspec.json.encode(made)) == made
        assert older.read_plan(msgspec.json.encode(store.plan(made.id))) == store.plan(made.id)
    assert older.read_plan(b"") is None
