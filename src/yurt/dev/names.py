"""Completion of the names of dev nodes."""

from __future__ import annotations

import click


def dev_names(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the dev nodes that complete a word; none if the index cannot be read."""
    try:
        from yurt.dev.words import unfinished_names

        return [name for name in unfinished_names() if name.startswith(incomplete)]
    except Exception:
        return []
