"""Filters KEY=VALUE, as `ps`, `show` and the Python API take them."""

from __future__ import annotations

from collections.abc import Sequence

from yurt.errors import UserError, one_of
from yurt.model import params
from yurt.model.run import State
from yurt.store import Entry

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
            where.setdefault(key, []).append(value)
        else:
            rest.append((key, value))
    return where, rest


def passes(entry: Entry, key: str, value: str) -> bool:
    """Return whether a run has this tag, or this value of a parameter."""
    if key == "tag":
        return value in entry.run.tags
    return key in entry.run.params and params.as_text(entry.run.params[key]) == value
