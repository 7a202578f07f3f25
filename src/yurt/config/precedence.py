"""Where a setting comes from: flag > environment > project > context > default, decided here and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from yurt.config import contexts, project
from yurt.errors import UserError
from yurt.model.context import LOCAL, Context
from yurt.model.settings import TABLE

KEYS: tuple[str, ...] = Context.__struct_fields__

FIXED = ("name", "type", "lab")
"""What makes a context that context: no flag, variable or project changes it."""

MAPPINGS = {row.key for row in TABLE if row.form in ("mapping", "options", "group")}
"""Settings whose parts are decided one by one: `gpu` may come from a flag and `mem` from the context."""


class Setting(msgspec.Struct, frozen=True):
    """A setting and where its value came from: flag, $YURT_TIME, yurt.yaml:3, contexts.yaml:12, default.

    The value of a mapping may have several sources; the strongest stands first.
    """

    key: str
    value: Any
    source: str


def decide(key: str, places: Iterable[tuple[str, Any]]) -> Setting:
    """The value of one setting from (source, value or None) of each place, the strongest first; else its default."""
    given = [(source, value) for source, value in places if value is not None]
    if not given:
        return Setting(key, _value(LOCAL, key), "default")
    if key not in MAPPINGS:
        return Setting(key, given[0][1], given[0][0])
    merged: dict[str, Any] = {}
    for _source, value in reversed(given):
        merged.update(value)
    return Setting(key, merged, ", ".join(source for source, _value in given))


def resolve(context: Context, flags: Mapping[str, Any] | None = None) -> dict[str, Setting]:
    """Every setting of a run on a context. A flag not given is None, () or {}.

    UserError where a variable, the project or the file of contexts holds something wrong.
    """
    found = project.find()
    file = contexts.default_file()
    lines = contexts.key_lines(file, context.name)

    def places(key: str) -> Iterator[tuple[str, Any]]:
        if key not in FIXED:
            yield "flag", _tidied(key, (flags or {}).get(key), "")
            variable = f"YURT_{key.upper()}"
            yield f"${variable}", _tidied(key, os.environ.get(variable), variable)
        if found is not None and key in found.settings:
            yield f"{found.file.name}:{found.lines.get(key, 1)}", found.settings[key]
        if key in lines:
            yield f"{file.name}:{lines[key]}", _value(context, key)
        elif _value(context, key) != _value(LOCAL, key):
            yield "context", _value(context, key)

    return {key: decide(key, places(key)) for key in KEYS if key != "name"}


def as_context(name: str, settings: Mapping[str, Setting]) -> Context:
    """The context a run sees once everything is decided."""
    values = {key: setting.value for key, setting in settings.items() if setting.value is not None}
    return msgspec.convert({**values, "name": name}, Context)


def _value(context: Context, key: str) -> Any:
    return msgspec.to_builtins(getattr(context, key))


def _tidied(key: str, value: Any, variable: str) -> Any:
    """The value of an environment variable, or else of a flag, in yurt's own form; None where none was given."""
    if value is None or value in ("", (), [], {}):
        return None
    from yurt.model.context_check import check_body

    values, faults = check_body({key: value}, KEYS, "a context")
    if faults:
        row = next(row for row in TABLE if row.key == key)
        flag = row.flag or f"--{key.replace('_', '-')}"
        label, example = (f"${variable}", f"{variable}={row.example}") if variable else (flag, f"{flag} {row.example}")
        said = "; ".join(".".join((label, *fault.path[1:])) + f" {fault.problem}" for fault in faults)
        raise UserError(f"{said}. For example: {example}", code="config-invalid" if variable else "usage")
    return next(iter(values.values()), None)
