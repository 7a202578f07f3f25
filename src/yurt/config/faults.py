"""Makes one error of everything that is wrong in a file of the user's."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from yurt.config import paths
from yurt.errors import UserError
from yurt.model.context_check import Fault


def editor() -> str:
    """The user's editor, as a shell would run it."""
    return os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"


def error(file: Path | str, faults: Sequence[Fault], lines: Mapping[tuple[str, ...], int]) -> UserError:
    """One error for all faults, in the order of their lines; it names the file and what to do."""
    told = sorted(((line_of(fault.path, lines), fault.sentence) for fault in faults), key=lambda each: each[0])
    if len(told) == 1:
        message = f"{file}:{told[0][0]}: {told[0][1]}"
    else:
        message = "\n".join([f"{file} has {len(told)} faults:", *(f"  line {line}: {said}" for line, said in told)])
    hint = f"{editor()} {paths.as_typed(file)}" if isinstance(file, Path) else ""
    return UserError(message, code="config-invalid", hint=hint)


def line_of(path: tuple[str, ...], lines: Mapping[tuple[str, ...], int]) -> int:
    """The line of a key; of what it stands in, where the key itself is missing."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)
