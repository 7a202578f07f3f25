"""Converts records of older yurt versions, in an index or a run folder, to the current field names."""

from __future__ import annotations

import sqlite3
from typing import Any

import msgspec

from yurt.model.run import Plan, Run

RUN = {
    "kind": "context_type",
    "asked": "resources",
    "again": "restart_policy",
    "sets": "tasks",
    "who": "user",
    "yurt": "yurt_version",
}
POLICY = {"requeues": "max_requeues", "before": "signal_before", "errors": "retry_errors"}
CODE = {"changed": "dirty"}
STATUS = {
    "rooted": "confirmed",
    "cancel": "cancel_requested",
    "tally": "task_states",
    "out": "submitted_tasks",
    "elsewhere": "other_machine",
}
PLAN = {"tasks": "use_srun", "options": "native_options", "lines": "native_lines"}

Record = dict[str, Any]


def read_run(content: bytes) -> Run:
    """Read a run.json of any yurt version. msgspec.MsgspecError if it is invalid."""
    if b'"asked":' not in content:
        return msgspec.json.decode(content, type=Run)
    return msgspec.convert(_run(msgspec.json.decode(content, type=Record)), Run)


def read_plan(content: bytes) -> Plan | None:
    """Read a plan.json of any yurt version; None if it is empty."""
    if b'"asked":' not in content:
        return msgspec.json.decode(content or b"null", type=Plan | None)
    return msgspec.json.decode(msgspec.json.encode(_plan(msgspec.json.decode(content, type=Record))), type=Plan)


def rename_fields(db: sqlite3.Connection) -> None:
    """Rename the fields of every record in an index to the current names."""
    for run_id, run, status in db.execute("SELECT id, run, status FROM records").fetchall():
        values = (_changed(run, _run), _changed(status, _status), run_id)
        db.execute("UPDATE records SET run = ?, status = ? WHERE id = ?", values)
    for run_id, plan in db.execute("SELECT id, plan FROM plans").fetchall():
        db.execute("UPDATE plans SET plan = ? WHERE id = ?", (_changed(plan, _plan), run_id))
    for sweep, task, status in db.execute("SELECT sweep, task, status FROM tasks").fetchall():
        db.execute("UPDATE tasks SET status = ? WHERE sweep = ? AND task = ?", (_changed(status, _status), sweep, task))


def _changed(content: bytes, how: Any) -> bytes:
    return msgspec.json.encode(how(msgspec.json.decode(content, type=Record)))


def _run(old: Record) -> Record:
    if "asked" not in old:
        return old
    new = _renamed(old, RUN)
    return {
        **new,
        "restart_policy": _renamed(old.get("again", {}), POLICY),
        "code": _renamed(old.get("code", {}), CODE),
    }


def _status(old: Record) -> Record:
    return _renamed(old, STATUS)


def _plan(old: Record) -> Record:
    return {**_renamed(old, PLAN), "run": _run(old["run"])}


def _renamed(old: Record, names: dict[str, str]) -> Record:
    return {names.get(key, key): value for key, value in old.items()}
