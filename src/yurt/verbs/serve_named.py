"""serve NAME and serve -- PROGRAM: what to run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from yurt.errors import UserError
from yurt.services import programs
from yurt.services.programs import Wanted

EXAMPLE = "for example: `yurt serve -- python -m http.server {port}`"


def wanted(words: Sequence[str], *, open_port: bool) -> tuple[Wanted, dict[str, Any]]:
    """Return the service that words mean, and its settings: a name of yurt.yaml, or `--` and a program."""
    if words[:1] == ["--"] and len(words) > 1:
        return Wanted(program=programs.COMMAND, words=words[1:], open_port=open_port), {}
    if not words or words == ["--"]:
        raise UserError("no program is given", code="usage", hint=EXAMPLE)
    raise UserError(f"service '{words[0]}' not found", code="usage", hint=EXAMPLE)
