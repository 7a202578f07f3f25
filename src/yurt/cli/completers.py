"""Words that complete a value on the command line: files, partitions, columns of a sweep. Nothing is queried."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COLUMNS = ("task", "state", "took", "exit")
"""Columns that the table of every sweep has."""


def files(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let the shell complete a file name."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def folders(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let the shell complete the name of a folder."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="dir")]


def partitions(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the partitions of the context, by its recorded facts; none if it was never probed."""
    from yurt.cli.app import App

    try:
        from yurt.config import contexts, facts

        name = contexts.current_name(ctx.find_root().ensure_object(App).context)
        found = facts.load(contexts.site(name))
    except Exception:
        return []
    names = [] if found is None else [partition.name for partition in found.partitions]
    return [name for name in names if name.startswith(incomplete)]


def columns(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the columns of a sweep's table that complete a word, also after the `-` of a descending order."""
    minus = "-" if incomplete.startswith("-") else ""
    names = (f"{minus}{name}" for name in (*COLUMNS, *_parameters(ctx)))
    return [name for name in names if name.startswith(incomplete)]


def parameters(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the parameters of a sweep that complete a word."""
    return [name for name in _parameters(ctx) if name.startswith(incomplete)]


def _parameters(ctx: click.Context) -> list[str]:
    """Return the parameters of the sweep on the command line, or of the newest sweep."""
    try:
        from yurt.verbs.show import sweep_parameters

        # click does not assign arguments if the option to complete has no value yet
        return sweep_parameters(ctx.params.get("run") or next(iter(ctx.args), ""))
    except Exception:
        return []
