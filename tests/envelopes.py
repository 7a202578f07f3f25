"""JSON that yurt printed, held against the published schemas."""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path
from typing import Any
from unittest import mock

SCHEMAS = Path(__file__).parent.parent / "schema"


def problem(line: str) -> str:
    """Return what is wrong with an envelope; an empty string if it is as its schema says."""
    envelope = json.loads(line)
    name = "error" if "error" in envelope else envelope["kind"]
    error = next(_validator(name).iter_errors(envelope), None)
    return "" if error is None else f"{name}: {error.json_path}: {error.message}"


@functools.cache
def _validator(name: str) -> Any:
    # jsonschema imports this only to check formats, which takes seconds and which no schema of yurt needs.
    with mock.patch.dict(sys.modules, {"rfc3987_syntax": None}):
        from jsonschema import Draft202012Validator
    schema = json.loads((SCHEMAS / f"{name}.json").read_text())
    for definition in schema.get("$defs", {}).values():  # what is printed and not published is an error, too
        definition["additionalProperties"] = False
    return Draft202012Validator(schema)
