"""Combines all faults of a configuration file into one error."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from yurt.config import paths
from yurt.errors import UserError
from yurt.model.context_check import Fault

MOST = 50
"""How many faults a message lists; it counts the others."""


def editor() -> str:
    """Return the user's editor command."""
    return os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"


def error(file: Path | str, faults: Sequence[Fault], lines: Mapping[tuple[str, ...], int]) -> UserError:
    """Return one error for all faults, ordered by line, with the command to edit the file as its hint."""
    rows = sorted(((line_of(fault.path, lines), fault.sentence) for fault in faults), key=lambda each: each[0])
    if len(rows) > 1:
        listed = [f"  line {line}: {text}" for line, text in rows[:MOST]]
        more = [f"  and {len(rows) - MOST} more"] if len(rows) > MOST else []
        message = "\n".join([f"{file} has {len(rows)} errors:", *listed, *more])
    else:
        ((line, problem),) = rows
        message = f"{file}:{line}: {problem}"
    return UserError(message, code="config-invalid", hint=edit_hint(file) if isinstance(file, Path) else "")


def edit_hint(file: Path) -> str:
    """Return the hint to edit a file."""
    return f"edit the file with `{editor()} {paths.as_typed(file)}`"


def line_of(path: tuple[str, ...], lines: Mapping[tuple[str, ...], int]) -> int:
    """Return the line of a key, or of its nearest existing parent if the key is missing."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)
