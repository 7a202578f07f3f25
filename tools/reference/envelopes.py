"""JSON output: one schema per kind of envelope, and a readable page of all of them."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import json
from collections.abc import Iterator
from typing import Any

import msgspec

from tools.reference.fields import MEANINGS
from tools.reference.kinds import KINDS
from yurt.model.settings import TABLE

INTRODUCTION = """\
# JSON output

Every command takes `--json`. All except `yurt shell` print one envelope on standard output:

```json
{"yurt": 1, "kind": "…", "data": …, "warnings": ["…"]}
```

If the command fails, the envelope has an error instead. [Errors and exit codes](errors.md) lists all codes.

```json
{"yurt": 1, "error": {"code": "…", "fault": "user|site|transient|bug", "message": "…", "hint": "…"}}
```

`yurt logs` and `yurt ps --watch` print one envelope per line. The number after `yurt` changes only when a program that
reads the old envelope would break; new fields may appear at any time. Points in time are Unix timestamps, in
seconds, unless a field says otherwise.

## Kinds

| `kind` | printed by | `data` | schema |
|---|---|---|---|
"""

ERROR: dict[str, Any] = {
    "type": "object",
    "properties": {
        "code": {"type": "string"},
        "fault": {"enum": ["user", "site", "transient", "bug"]},
        "message": {"type": "string"},
        "hint": {"type": "string"},
    },
    "required": ["code", "fault", "message", "hint"],
}


def schemas() -> dict[str, str]:
    """Return the JSON schema of each kind of envelope, and of the envelope of an error."""
    found = {kind: _envelope(kind, shape) for kind, (_command, shape) in KINDS.items()}
    found["error"] = {"properties": {"yurt": {"const": 1}, "error": ERROR}, "required": ["yurt", "error"]}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}
    return {kind: json.dumps(head | schema, indent=1, ensure_ascii=False) + "\n" for kind, schema in found.items()}


def _envelope(kind: str, shape: Any) -> dict[str, Any]:
    data, definitions = schema_of(shape)
    properties = {
        "yurt": {"const": 1},
        "kind": {"const": kind},
        "data": data,
        "warnings": {"type": "array", "items": {"type": "string"}},
    }
    schema: dict[str, Any] = {"properties": properties, "required": list(properties)}
    return schema | ({"$defs": definitions} if definitions else {})


@functools.cache
def schema_of(shape: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the schema of a type and the definitions it refers to, with a description for each field."""
    (schema,), definitions = msgspec.json.schema_components([shape], ref_template="#/$defs/{name}")
    about = dict(_descriptions(shape))
    for name, definition in definitions.items():
        definition["description"] = inspect.cleandoc(definition.get("description", "")).split("\n\n")[0]
        for field, each in definition.get("properties", {}).items():
            each["description"] = about.get((name, field)) or MEANINGS.get(f"{name}.{field}") or MEANINGS[field]
    return schema, definitions


def page() -> str:
    definitions: dict[str, Any] = {}
    rows = ""
    for kind, (command, shape) in KINDS.items():
        data, found = schema_of(shape)
        for name, definition in found.items():
            if definitions.setdefault(name, definition) != definition:
                raise LookupError(f"two types are called {name}: rename one")
        rows += f"| `{kind}` | `{command}` | {type_of(data)} | [{kind}.json](../../schema/{kind}.json) |\n"
    objects = "".join(_table(name, definition) for name, definition in sorted(definitions.items()))
    return f"{INTRODUCTION}{rows}\n## Objects\n{objects}"


def _table(name: str, definition: dict[str, Any]) -> str:
    about = " ".join(definition["description"].split())
    if "properties" not in definition:  # an array, whose description says what it contains
        return f"\n### {name}\n\n{about}\n"
    rows = "".join(
        f"| `{field}` | {type_of(each)} | {' '.join(each.get('description', '').split())} |\n"
        for field, each in definition["properties"].items()
    )
    return f"\n### {name}\n\n{about}\n\n| field | type | meaning |\n|---|---|---|\n{rows}"


def type_of(schema: dict[str, Any]) -> str:
    """Return a schema's type in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(sorted((type_of(each) for each in schema["anyOf"]), key=lambda words: words == "null"))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    kind = str(schema.get("type", "anything"))
    if kind == "array":
        return (
            f"list of {' and '.join(type_of(each) for each in schema.get('prefixItems', [schema.get('items') or {}]))}"
        )
    return kind if not schema.get("additionalProperties") else f"object of {type_of(schema['additionalProperties'])}"


def _descriptions(shape: Any) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield ((class, field), text) for the structs below a type: the string under a field of the class's source."""
    settings = {row.key: row.about for row in TABLE if row.key}
    for struct in _structs(shape, set()):
        prefix = {"Context": "", "ContextResources": "resources."}.get(struct.__name__)
        if prefix is not None:
            yield from (((struct.__name__, key), settings[prefix + key]) for key in struct.__struct_fields__)
        for base in struct.__mro__:
            if base.__module__.startswith("yurt."):
                yield from (((struct.__name__, field), text) for field, text in _field_docs(base).items())


def _structs(shape: Any, seen: set[Any]) -> Iterator[Any]:
    info = msgspec.inspect.type_info(shape)
    pending = [info]
    while pending:
        each = pending.pop()
        if isinstance(each, msgspec.inspect.StructType):
            if each.cls in seen:
                continue
            seen.add(each.cls)
            yield each.cls
            pending += [field.type for field in each.fields]
        else:
            for name in ("item_type", "key_type", "value_type"):
                if (inner := getattr(each, name, None)) is not None:
                    pending.append(inner)
            pending += [*getattr(each, "types", ()), *getattr(each, "item_types", ())]


@functools.cache
def _field_docs(struct: type) -> dict[str, str]:
    """Return the docstrings of a class's fields."""
    node, found = _classes(struct.__module__)[struct.__name__], {}
    for field, text in zip(node.body, node.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            found[ast.unparse(field.target)] = inspect.cleandoc(str(text.value.value))
    return found


@functools.cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    """Return the classes at the top of a module by their names."""
    tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
