"""ps: how runs stand, the newest first."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from yurt.errors import UserError
from yurt.model import params
from yurt.model.run import FINAL, State
from yurt.store import Entry, Store

COLUMNS = ("state", "context", "name", "project")


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One run in the list."""

    id: str
    name: str
    context: str
    project: str
    state: State
    reason: str
    native: str
    job: str
    node: str
    command: list[str]
    params: dict[str, Any]
    tags: list[str]
    created: float
    started: float | None
    ended: float | None
    exit_code: int | None
    restarts: int
    seconds: float | None
    """How long it ran, over all its starts; known when it has ended."""
    seen_at: float | None
    """When its site was last looked at; None if never."""
    tasks: int
    """How many tasks it has, if it is a sweep; else 0."""
    task_states: dict[str, int]
    """How many of these are in which state."""


def rows(
    store: Store, *, limit: int | None, filters: Sequence[str] = (), context: str = "", unfinished: bool = False
) -> list[Row]:
    """Runs that pass all filters (see `read_filters`)."""
    where, rest = read_filters(filters)
    if context:
        where["context"] = [context]
    found = store.newest(None if rest else limit, where=where, unfinished=unfinished)
    passing = (entry for entry in found if all(passes(entry, key, value) for key, value in rest))
    looks: dict[str, float | None] = {}
    return [_row(store, entry, looks) for entry in itertools.islice(passing, limit)]


def read_filters(filters: Sequence[str]) -> tuple[dict[str, list[str]], list[tuple[str, str]]]:
    """Filters KEY=VALUE as allowed values by column, and others (tag, parameters). UserError for a wrong one."""
    where: dict[str, list[str]] = {}
    rest: list[tuple[str, str]] = []
    for text in filters:
        key, equals, value = params.shown(text).partition("=")
        if not equals or not key:
            raise UserError(f"--filter: '{text}' is not KEY=VALUE", code="usage", hint="for example state=running")
        if key == "state" and value not in State.__args__:  # type: ignore[attr-defined]
            known = ", ".join(State.__args__)  # type: ignore[attr-defined]
            raise UserError(f"--filter: '{value}' is no state", code="usage", hint=known)
        if key in COLUMNS:
            where.setdefault(key, []).append(value)
        else:
            rest.append((key, value))
    return where, rest


def passes(entry: Entry, key: str, value: str) -> bool:
    """Whether a run has that tag, or that value of a parameter."""
    if key == "tag":
        return value in entry.run.tags
    return key in entry.run.params and params.as_text(entry.run.params[key]) == value


def _row(store: Store, entry: Entry, looks: dict[str, float | None]) -> Row:
    run, status = entry.run, entry.status
    if run.context not in looks:
        looks[run.context] = store.looked_at(run.context)
    last = looks[run.context]
    seen = status.seen_at if status.state in FINAL or last is None else max(last, status.seen_at or 0)
    return Row(
        id=run.id,
        name=run.name,
        context=run.context,
        project=run.project,
        state=status.state,
        reason=status.reason,
        native=status.native,
        job=status.job,
        node=status.node,
        command=run.command,
        params=run.params,
        tags=run.tags,
        created=run.created,
        started=status.started,
        ended=status.ended,
        exit_code=status.exit_code,
        restarts=status.restarts,
        seconds=status.seconds,
        seen_at=seen,
        tasks=run.tasks,
        task_states=status.task_states or ({status.state: run.tasks} if run.tasks else {}),
    )


def changes(before: Sequence[Row], after: Sequence[Row]) -> Iterator[Row]:
    """Rows that are new or say something else than before."""
    known = {row.id: msgspec.structs.replace(row, seen_at=None) for row in before}
    for row in after:
        if known.get(row.id) != msgspec.structs.replace(row, seen_at=None):
            yield row
