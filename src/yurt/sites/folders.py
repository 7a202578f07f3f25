"""Where things are kept, on this machine and on a context."""

from __future__ import annotations

import os

from yurt.backends.kinds import kind_of
from yurt.config import paths
from yurt.errors import UserError
from yurt.model import layout
from yurt.model.context import Context
from yurt.model.facts import Facts
from yurt.sites.facts import storage_folder
from yurt.store import Store


def store() -> Store:
    """The index of runs of whoever calls yurt."""
    return Store(f"{paths.data_home()}/yurt.db")


def known_store() -> Store | None:
    """The same, if there is one already."""
    return store() if os.path.exists(f"{paths.data_home()}/yurt.db") else None


def base_folder(context: Context, facts: Facts | None) -> str:
    """The folder of all that yurt keeps on a context."""
    if kind_of(context.type).here:
        return f"{expand_here(context.storage_dir)}/yurt" if context.storage_dir else str(paths.data_home())
    assert facts is not None
    return layout.base(storage_folder(context, facts))


def project_folder(context: Context, facts: Facts | None, label: str) -> str:
    """The folder of a project on a context."""
    folder = layout.project(base_folder(context, facts), label)
    if not folder.isprintable():
        raise UserError(f"the folder for runs on '{context.name}' may not hold such a letter: {folder!r}", code="usage")
    return folder


def expand(context: Context, facts: Facts | None, path: str, key: str) -> str:
    """A path of a setting with ~ and variables as they are on the context."""
    if facts is None:
        return expand_here(path)
    try:
        return facts.expand(path)
    except KeyError as error:
        raise UserError(
            f"{key} of context '{context.name}' names ${error.args[0]}, which is not set there",
            code="config-invalid",
            hint=f"yurt context edit {context.name}",
        ) from None


def expand_here(path: str) -> str:
    return os.path.abspath(os.path.expandvars(os.path.expanduser(path)))
