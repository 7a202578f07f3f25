"""Resolves settings by precedence: flag, environment, service, project, context, default. Only here is it decided."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from yurt.config import contexts, project
from yurt.errors import UserError
from yurt.model.context import LOCAL, Context
from yurt.model.settings import TABLE

if TYPE_CHECKING:
    from yurt.model.context_check import Fault
    from yurt.model.settings_row import Row

KEYS: tuple[str, ...] = Context.__struct_fields__

FIXED = ("name", "type", "lab")
"""Settings that identify a context; flags, variables and projects cannot change them."""

MAPPINGS = {row.key for row in TABLE if row.form in ("mapping", "options", "group")}
"""Settings that are merged key by key: `gpu` may come from a flag and `mem` from the context."""


class Setting(msgspec.Struct, frozen=True):
    """A setting and the source of its value: flag, $YURT_TIME, yurt.yaml:3, contexts.yaml:12, default.

    A mapping may have several sources; the one with the highest precedence comes first.
    """

    key: str
    value: Any
    source: str


def decide(key: str, places: Iterable[tuple[str, Any]]) -> Setting:
    """Return a setting from (source, value or None) pairs, highest precedence first; else its default."""
    given = [(source, value) for source, value in places if value is not None]
    if not given:
        return Setting(key, _value(LOCAL, key), "default")
    if key not in MAPPINGS:
        return Setting(key, given[0][1], given[0][0])
    merged: dict[str, Any] = {}
    for _source, value in reversed(given):
        merged.update(value)
    return Setting(key, merged, ", ".join(source for source, _value in given))


def resolve(context: Context, flags: Mapping[str, Any] | None = None, service: str = "") -> dict[str, Setting]:
    """Return every setting of a run on a context. A flag that is not given is None, () or {}.

    `service`: the entry of the project's services whose settings come before those of the project.

    UserError if a flag, a variable, the project file or the contexts file is invalid.
    """
    found = project.find()
    entry = found.services.get(service) if found is not None else None
    file = contexts.default_file()
    lines = contexts.key_lines(file, context.name)

    def places(key: str) -> Iterator[tuple[str, Any]]:
        if key not in FIXED:
            yield "flag", _tidied(key, (flags or {}).get(key), "")
            variable = f"YURT_{key.upper()}"
            yield f"${variable}", _tidied(key, os.environ.get(variable), variable)
        if found is not None and entry is not None and key in entry.settings:
            yield f"{found.file.name}:{entry.lines.get(key, 1)}", entry.settings[key]
        if found is not None and key in found.settings:
            yield f"{found.file.name}:{found.lines.get(key, 1)}", found.settings[key]
        if key in lines:
            yield f"{file.name}:{lines[key]}", _value(context, key)
        elif _value(context, key) != _value(LOCAL, key):
            yield "context", _value(context, key)

    return {key: decide(key, places(key)) for key in KEYS if key != "name"}


def as_context(name: str, settings: Mapping[str, Setting]) -> Context:
    """Return the context with all settings resolved."""
    values = {key: setting.value for key, setting in settings.items() if setting.value is not None}
    return msgspec.convert({**values, "name": name}, Context)


def _value(context: Context, key: str) -> Any:
    return msgspec.to_builtins(getattr(context, key))


def _tidied(key: str, value: Any, variable: str) -> Any:
    """Return the canonical value of an environment variable or a flag; None if it is not given."""
    if value is None or value in ("", (), [], {}):
        return None
    from yurt.model.context_check import check_body

    values, faults = check_body({key: value}, KEYS, "a context")
    if faults:
        raise _invalid(key, variable, faults)
    return next(iter(values.values()), None)


def _invalid(key: str, variable: str, faults: Sequence[Fault]) -> UserError:
    rows = {row.key: row for row in TABLE}
    if variable:
        problems = [".".join((f"${variable}", *fault.path[1:])) + f" {fault.problem}" for fault in faults]
        value = _example(rows[key], " ")
        return UserError("; ".join(problems), code="config-invalid", hint=f"for example: `export {variable}={value}`")
    problems = []
    for fault in faults:
        part = rows.get(".".join(fault.path))
        path = [part.flag] if part is not None and part.flag else [_flag(rows[key]), *fault.path[1:]]
        problems.append(f"{'.'.join(path)} {fault.problem}")
    row = rows.get(".".join(faults[0].path), rows[key])
    option, value = _flag(row), _example(row, "")
    hint = f"for example: `{option} {value}`"
    return UserError("; ".join(problems), code="usage", hint=hint)


def _flag(row: Row) -> str:
    return row.flag or f"--{row.key.replace('_', '-')}"


def _example(row: Row, separator: str) -> str:
    """Return the example of a setting as typed in a shell; only the first item of several without a separator."""
    from yurt.config import yaml_text

    value = yaml_text.parse(row.example)
    if isinstance(value, dict):
        items = [name if text is None else f"{name}={text}" for name, text in value.items()]
    else:
        items = [str(each) for each in (value if isinstance(value, list) else [value])]
    return shlex.quote(separator.join(items) if separator else items[0])
