"""Filters KEY=VALUE, as `ps`, `show` and the Python API take them."""

from __future__ import annotations

from collections.abc import Sequence

from yurt.errors import UserError
from yurt.model import params
from yurt.model.run import State
from yurt.store import Entry

COLUMNS = ("state", "context", "name", "project")
"""Keys that the index finds runs by."""


def pair(text: str, *, example: str) -> tuple[str, str]:
    """The key and the value of a filter. UserError: it is none, or no state is called that."""
    key, equals, value = params.shown(text).partition("=")
    if not equals or not key:
        raise UserError(f"--filter: '{text}' is not KEY=VALUE", code="usage", hint=f"for example {example}")
    states = State.__args__  # type: ignore[attr-defined]
    if key == "state" and value not in states:
        raise UserError(f"--filter: '{value}' is no state", code="usage", hint=", ".join(states))
    return key, value


def read_filters(filters: Sequence[str]) -> tuple[dict[str, list[str]], list[tuple[str, str]]]:
    """Filters KEY=VALUE as allowed values by column, and others (tag, parameters). UserError for a wrong one."""
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
    """Whether a run has that tag, or that value of a parameter."""
    if key == "tag":
        return value in entry.run.tags
    return key in entry.run.params and params.as_text(entry.run.params[key]) == value
