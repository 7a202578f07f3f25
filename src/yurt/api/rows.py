"""Tables of runs: rows for pandas and polars, and HTML for notebooks."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from typing import Any

import msgspec

from yurt.lifecycle.files import metrics
from yurt.lifecycle.tasks import task_rows
from yurt.model import ids, params
from yurt.store import Entry, Store

OWN = (
    *("id", "sweep", "task", "name", "context", "state", "command", "tags"),
    *("started", "ended", "seconds", "exit_code"),
)
"""Columns of a row that are neither parameters nor metrics."""

MOST_SHOWN = 100
"""How many runs a table in a notebook shows."""


def rows_of(index: Store, entry: Entry) -> list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """Return, for each row of a run, its own columns, its parameters and its metrics."""
    run, status = entry.run, entry.status
    shared = {"name": run.name, "context": run.context, "command": shlex.join(run.command), "tags": list(run.tags)}
    if run.tasks:
        fields = ("state", "started", "ended", "seconds", "exit_code")
        tasks = index.several([ids.task(run.id, number) for number in range(run.tasks)])
        commands = {task.run.id: shlex.join(task.run.command) for task in tasks}
        return [
            (
                {
                    "id": row.id,
                    "sweep": run.id,
                    "task": row.task,
                    **shared,
                    "command": commands.get(row.id, shared["command"]),
                    **{key: getattr(row, key) for key in fields},
                },
                row.params,
                row.metrics,
            )
            for row in task_rows(index, entry)
        ]
    own: dict[str, Any] = {"id": run.id, "sweep": run.sweep or None, "task": run.task, **shared, "state": status.state}
    own |= {"started": status.started, "ended": status.ended, "seconds": status.seconds, "exit_code": status.exit_code}
    logged = metrics.last(index, entry) or metrics.of(msgspec.json.encode(status.metrics))
    return [(own, run.params, {each.name: each.value for each in logged})]


def merged(found: Sequence[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]) -> list[dict[str, Any]]:
    """Merge the three parts of each row; all rows get the same keys."""
    given = dict.fromkeys(key for _own, values, _logged in found for key in values)
    logged = dict.fromkeys(key for _own, _values, numbers in found for key in numbers)
    titles = {key: f"params.{key}" if key in logged or key in OWN else key for key in given}
    names = {key: f"metrics.{key}" if key in given or key in OWN else key for key in logged}
    return [
        {
            **own,
            **{title: values.get(key) for key, title in titles.items()},
            **{title: numbers.get(key) for key, title in names.items()},
        }
        for own, values, numbers in found
    ]


def html(entries: Sequence[Entry]) -> str:
    """Return a table for notebooks, one row for each run, sweep or task."""
    titles = ("id", "name", "context", "state", "command", "tags", "parameters", "started", "seconds")
    rows = [_cells(entry) for entry in entries[:MOST_SHOWN]]
    left_out = len(entries) - len(rows)
    more = f"<p>… and {left_out} more</p>" if left_out else ""
    head, body = _row(titles, "th"), "".join(_row(each, "td") for each in rows)
    return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>{more}"


def _row(texts: Iterable[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts) + "</tr>"


def _cells(entry: Entry) -> list[str]:
    run, status = entry.run, entry.status
    tasks = f" ({status.task_states.get('completed', 0)} of {run.tasks} tasks completed)" if run.tasks else ""
    return [
        run.id,
        run.name,
        run.context,
        f"{status.state}{tasks}",
        shlex.join(run.command),
        ", ".join(run.tags),
        ", ".join(f"{key}={params.as_text(value)}" for key, value in run.params.items()),
        "" if status.started is None else datetime.fromtimestamp(status.started).strftime("%Y-%m-%d %H:%M:%S"),
        "" if status.seconds is None else f"{status.seconds:.1f}",
    ]
