"""contexts.yaml: read into context values, and changed without losing the user's comments."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from yurt.config import paths
from yurt.errors import UserError
from yurt.model.context import Context, ContextsFile


def default_file() -> Path:
    return paths.config_home() / "contexts.yaml"


def load(file: Path) -> ContextsFile:
    """The contexts in a file; none where there is no file. UserError names the file and what is wrong."""
    import yaml

    try:
        text = file.read_text()
    except FileNotFoundError:
        return ContextsFile()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file} cannot be read: {error}", code="config-invalid") from None
    try:
        raw = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)) or {}
    except yaml.YAMLError as error:
        raise UserError(f"{file} is not valid YAML: {' '.join(str(error).split())}", code="config-invalid") from None
    try:
        bodies = msgspec.convert(raw.get("contexts") or {}, dict[str, dict[str, Any]])
        current = msgspec.convert(raw.get("current_context"), str | None)
        found = {name: msgspec.convert({**body, "name": name}, Context) for name, body in bodies.items()}
    except (msgspec.ValidationError, AttributeError) as error:
        raise UserError(f"{file}: {error}", code="config-invalid", hint="see docs/reference/contexts.md") from None
    return ContextsFile(found, current)


def put(file: Path, new: Iterable[Context]) -> None:
    """Add contexts, or replace those of the same name; everything else in the file stays as it is."""
    document = _parse_with_comments(file)
    bodies = document.setdefault("contexts", {})
    for context in new:
        body = msgspec.to_builtins(context)
        del body["name"]
        if context.name in bodies and dict(bodies[context.name]) == body:
            continue
        bodies[context.name] = body
    _write(file, document)


def remove(file: Path, names: Iterable[str]) -> None:
    """Take contexts out of the file; names that are not there are no error."""
    doomed = set(names)
    if not doomed:
        return
    document = _parse_with_comments(file)
    for name in doomed & set(document.get("contexts") or {}):
        del document["contexts"][name]
    if document.get("current_context") in doomed:
        del document["current_context"]
    _write(file, document)


def _parse_with_comments(file: Path) -> Any:
    load(file)  # a file that yurt cannot read is never rewritten
    document = _round_trip().load(file.read_text()) if file.exists() else None
    document = {} if document is None else document
    if document.get("contexts", {}) is None:
        document["contexts"] = {}
    return document


def _write(file: Path, document: Any) -> None:
    text = io.StringIO()
    _round_trip().dump(document, text)
    try:
        paths.write_private(file, text.getvalue().encode())
    except OSError as error:
        raise UserError(f"{file} cannot be written: {error.strerror}", code="config-unwritable") from None


def _round_trip() -> Any:
    from ruamel.yaml import YAML

    parser = YAML(typ="rt")
    parser.width = 4096
    parser.preserve_quotes = True
    parser.indent(mapping=2, sequence=4, offset=2)
    return parser
