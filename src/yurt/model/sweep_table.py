"""The tasks of a sweep as a table: parameters, outcome, last metrics; sorted, filtered, as CSV. Pure."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from yurt.model import params
from yurt.model.run import State
from yurt.model.tally import BAD
from yurt.model.usage import Usage


class TaskRow(msgspec.Struct, frozen=True, kw_only=True):
    """One task of a sweep."""

    id: str
    task: int
    state: State
    reason: str
    started: float | None
    ended: float | None
    seconds: float | None
    """Total running time of all starts, in seconds; null until it has finished."""
    exit_code: int | None
    params: dict[str, Any]
    """Parameters of the sweep and of the task."""
    metrics: dict[str, Any]
    """The last value of each metric in the index of this machine."""
    usage: Usage | None = None
    """What it used of its resources; null if that is unknown."""


class Column(NamedTuple):
    """One column of the table."""

    title: str
    part: str
    """outcome, params or metrics."""
    of: Callable[[TaskRow], Any]
    """Returns the value of a row; None if it is missing or unknown."""


def took(row: TaskRow, now: float) -> float | None:
    """Return the run time in seconds, up to now if the task is running; None if it has not started."""
    if row.started is None:
        return None
    return row.seconds if row.seconds is not None else (row.ended or now) - row.started


def columns(rows: Sequence[TaskRow], now: float) -> list[Column]:
    """Return all columns: outcome, parameters, metrics, ordered by first occurrence.

    The outcome includes reasons only if a failed task has one that says more than its exit code.
    A name that occurs in two parts is prefixed with its part.
    """
    own: dict[str, Callable[[TaskRow], Any]] = {
        "task": lambda row: row.task,
        "state": lambda row: row.state,
        "took": lambda row: took(row, now),
        "exit": lambda row: row.exit_code,
    }
    if any(_tells_more(row) for row in rows):
        own["reason"] = lambda row: row.reason if row.state in BAD and row.reason else None
    keys = {
        "params": dict.fromkeys(key for row in rows for key in row.params),
        "metrics": dict.fromkeys(key for row in rows for key in row.metrics),
    }
    found = [Column(name, "outcome", of) for name, of in own.items()]
    for part, names in keys.items():
        other = keys["metrics" if part == "params" else "params"]
        for name in names:
            title = f"{part}.{name}" if name in other or name in own else name
            found.append(Column(title, part, _getter(part, name)))
    return found


def _tells_more(row: TaskRow) -> bool:
    """Return whether the reason of a failed task says more than its state and its exit code."""
    return row.state in BAD and row.reason not in ("", f"exit code {row.exit_code}")


def _getter(part: str, name: str) -> Callable[[TaskRow], Any]:
    return (lambda row: row.params.get(name)) if part == "params" else (lambda row: row.metrics.get(name))


def constant(rows: Sequence[TaskRow]) -> dict[str, Any]:
    """Return the parameters with the same value in all tasks."""
    if not rows:
        return {}
    first = rows[0].params
    return {
        key: value
        for key, value in first.items()
        if all(key in row.params and _written(row.params[key]) == _written(value) for row in rows)
    }


def _written(value: Any) -> bytes:
    return msgspec.json.encode(value)


def bare(each: Column) -> str:
    """Return the name of a column without its part."""
    return each.title.removeprefix(f"{each.part}.")


def column(available: Sequence[Column], key: str) -> Column:
    """Return a column by its title, or by part and name. LookupError if there is none."""
    for each in available:
        if key in (each.title, f"{each.part}.{bare(each)}"):
            return each
    raise LookupError(key)


def number(value: Any) -> float | None:
    """Return a value as a number, also from text; None if it is not a number or is NaN."""
    if isinstance(value, str):
        value = params.typed(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return None if math.isnan(found) else found


def ordered(rows: Iterable[TaskRow], by: Column, *, descending: bool = False) -> list[TaskRow]:
    """Sort rows by a column: numbers first, then text; rows without a value come last in either order."""
    numbers: list[tuple[float, TaskRow]] = []
    texts: list[tuple[str, TaskRow]] = []
    missing: list[TaskRow] = []
    for row in rows:
        value = by.of(row)
        as_number = number(value)
        if as_number is not None:
            numbers.append((as_number, row))
        elif value is None or (isinstance(value, float) and math.isnan(value)):
            missing.append(row)
        else:
            texts.append((params.as_text(value), row))
    numbers.sort(key=lambda each: each[0], reverse=descending)
    texts.sort(key=lambda each: each[0], reverse=descending)
    return [*(row for _value, row in numbers), *(row for _value, row in texts), *missing]


def passing(rows: Iterable[TaskRow], wanted: Sequence[tuple[Column, str]]) -> list[TaskRow]:
    """Return the rows in which every column has one of its wanted values."""
    allowed: dict[str, tuple[Column, list[str]]] = {}
    for each, value in wanted:
        allowed.setdefault(each.title, (each, []))[1].append(value)
    return [
        row
        for row in rows
        if all(any(same(each.of(row), value) for value in values) for each, values in allowed.values())
    ]


def same(value: Any, text: str) -> bool:
    """Whether a value equals a text, literally or as a number."""
    if value is None:
        return text == "null"
    if params.as_text(value) == text:
        return True
    left, right = number(value), number(text)
    return left is not None and left == right


def as_csv(available: Sequence[Column], rows: Iterable[TaskRow]) -> str:
    """Return the table as CSV (RFC 4180) with values as passed to scripts; missing values are empty."""
    import csv  # slow to import

    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow([each.title for each in available])
    for row in rows:
        values = (each.of(row) for each in available)
        writer.writerow(["" if value is None else params.summary(value) for value in values])
    return out.getvalue()


def fitting(
    available: Sequence[Column], widths: Mapping[str, int], room: int, keep: Collection[str] = ()
) -> tuple[list[Column], list[Column]]:
    """Return the columns that fit a line, two spaces apart, and those that do not.

    Drops the reasons first, then the last column of parameters or metrics, whichever are wider, until the rest fits.
    Never drops a column whose title is in `keep`.
    """
    shown, left_out = list(available), list[Column]()
    reasons = [each for each in shown if (each.part, each.title) == ("outcome", "reason") and each.title not in keep]
    if reasons and sum(widths[each.title] + 2 for each in shown) - 2 > room:
        shown, left_out = [each for each in shown if each not in reasons], reasons
    while sum(widths[each.title] + 2 for each in shown) - 2 > room:
        loose = [each for each in shown if each.part != "outcome" and each.title not in keep]
        if not loose:
            break
        share = {part: sum(widths[each.title] + 2 for each in loose if each.part == part) for part in _PARTS}
        widest = max(_PARTS, key=lambda part: share[part])
        last = [each for each in loose if each.part == widest][-1]
        shown.remove(last)
        left_out.insert(0, last)
    return shown, [each for each in available if each in left_out]


_PARTS = ("metrics", "params")
