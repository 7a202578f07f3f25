"""Filters KEY=VALUE, as `ps`, `show` and the Python API take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from yurt.errors import UserError, one_of
from yurt.model import params, sweep_table
from yurt.model.run import State
from yurt.model.tally import BAD
from yurt.store import Entry, Store

COLUMNS = ("state", "context", "name", "project")
"""Keys that are columns of the index."""


def pair(text: str, *, example: str) -> tuple[str, str]:
    """Return the key and the value of a filter. UserError if it is not KEY=VALUE, or the state is unknown."""
    key, equals, value = params.shown(text).partition("=")
    if not equals or not key:
        raise UserError(f"--filter: '{text}' is not KEY=VALUE", code="usage", hint=f"for example: `{example}`")
    states = State.__args__  # type: ignore[attr-defined]
    if key == "state" and value not in states:
        raise UserError(f"--filter: unknown state '{value}'", code="usage", hint=f"use {one_of(states)}")
    return key, value


def read_filters(filters: Sequence[str]) -> tuple[dict[str, list[str]], list[tuple[str, str]]]:
    """Split filters into allowed values by column, and others (tag, parameters). UserError for an invalid one."""
    where: dict[str, list[str]] = {}
    rest: list[tuple[str, str]] = []
    for text in filters:
        key, value = pair(text, example="state=running")
        if key in COLUMNS:
            where.setdefault(key, []).extend(meant_by(key, value))
        else:
            rest.append((key, value))
    return where, rest


def meant_by(key: str, value: str) -> Sequence[str]:
    """Return the values that a filter allows: `state=failed` means every unsuccessful end, as in counts and bars."""
    return BAD if (key, value) == ("state", "failed") else (value,)


def passes(store: Store, entry: Entry, wanted: Sequence[tuple[str, str]]) -> bool:
    """Return whether a run has all these tags and values of parameters; a sweep, whether one of its tasks has them."""
    run = entry.run
    if not all(value in run.tags for key, value in wanted if key == "tag"):
        return False
    missing = [(key, value) for key, value in wanted if key != "tag" and not _has(run.params, key, value)]
    if not missing or not run.tasks:
        return not missing
    # Parameters of a task take precedence over those of the sweep.
    given = [(key, value) for key, value in wanted if key != "tag"]
    sets = store.sets(run.id, missing[0][0])
    return any(all(_has(each if key in each else run.params, key, value) for key, value in given) for each in sets)


def _has(values: Mapping[str, Any], key: str, value: str) -> bool:
    return key in values and sweep_table.same(values[key], value)
