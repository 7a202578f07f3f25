"""Words that complete a value on the command line: contexts, runs, files and more. Nothing is queried."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import click
    from click.shell_completion import CompletionItem

COLUMNS = ("task", "state", "took", "exit")
"""Columns that the table of every sweep has."""


SPECIAL = frozenset(" `$;&|<>(){}[]*?!\\'\"~#")
"""What a shell interprets. It inserts the words of a completion as they are."""


def _plain(words: Iterable[str]) -> list[str]:
    """Return the words that a shell takes as they are: sites choose names of partitions, and of imported runs."""
    return [word for word in words if word.isprintable() and SPECIAL.isdisjoint(word)]


def context_names(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the contexts that complete a word; none if contexts.yaml cannot be read."""
    try:
        from yurt.config import contexts

        found = contexts.load(contexts.default_file())
    except Exception:
        return []
    return [name for name in (*found.contexts, *sorted(found.invalid)) if name.startswith(incomplete)]


def run_names(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the runs and sweeps that complete a word, newest first: their ids, the second part of their ids, or names.

    After a sweep's id and a dot, return its tasks.
    """
    if incomplete.startswith("@"):
        return [word for word in ("@last", "@last-sweep") if word.startswith(incomplete)]
    try:
        from yurt.contexts.folders import store

        first, dot, number = incomplete.partition(".")
        index = store()
        found = index.matching(first)
        if dot:
            (sweep,) = (entry for run in found if (entry := index.get(run)) is not None and entry.run.tasks)
            return [f"{first}.{task}" for task in range(sweep.run.tasks) if str(task).startswith(number)]
    except Exception:
        return []
    ids = [run if run.startswith(incomplete) else run.partition("-")[2] for run in found]
    return ids + (_plain(index.names(incomplete)) if incomplete else [])


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
    from yurt.cli.call import App

    try:
        from yurt.config import contexts, facts

        name = contexts.current_name(ctx.find_root().ensure_object(App).context)
        found = facts.load(contexts.site(name))
    except Exception:
        return []
    names = [] if found is None else [partition.name for partition in found.partitions]
    return _plain(name for name in names if name.startswith(incomplete))


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
        from yurt.lifecycle.show import sweep_parameters

        # click does not assign arguments if the option to complete has no value yet
        return _plain(sweep_parameters(ctx.params.get("run") or next(iter(ctx.args), "")))
    except Exception:
        return []
