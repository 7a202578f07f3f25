"""Quotes text for scripts. Pure; imports little, because every operation on a site needs it."""

from __future__ import annotations

from collections.abc import Sequence

from yurt import quoting


def quote(text: str) -> str:
    """Quote a text for a script; all text in a script passes through here."""
    return quoting.quote(text)


def own_arguments(paths: Sequence[str]) -> str:
    """Return the arguments of `own` (own.sh) for yurt's folder on a site and paths below it."""
    storage = paths[0].rpartition("/")[0] or "/"
    return " ".join(quote(path) for path in [storage, *paths])
