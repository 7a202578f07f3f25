"""Parts of messages that several verbs share."""

from __future__ import annotations

from collections.abc import Sequence


def either(names: Sequence[str]) -> str:
    """Return names as alternatives: a, b or c."""
    return " or ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)
