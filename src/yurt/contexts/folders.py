"""Paths of yurt's folders on this machine and on a context."""

from __future__ import annotations

import os

from yurt.backends.kinds import kind_of
from yurt.config import paths
from yurt.contexts.facts import storage_folder
from yurt.errors import UserError
from yurt.model import layout
from yurt.model.context import Context
from yurt.model.env import EnvPlace
from yurt.model.facts import Facts
from yurt.store import Store


def store() -> Store:
    """Open the user's index of runs."""
    return Store(index_file())


def index_file() -> str:
    """Return the path of the user's index of runs."""
    return f"{paths.data_home()}/yurt.db"


def known_store() -> Store | None:
    """Open the index if it exists."""
    return store() if os.path.exists(index_file()) else None


def base_folder(context: Context, facts: Facts | None) -> str:
    """Return yurt's base folder on a context."""
    if kind_of(context.type).here:
        return f"{expand_locally(context.storage_dir)}/yurt" if context.storage_dir else str(paths.data_home())
    assert facts is not None
    return layout.base(storage_folder(context, facts))


def env_folders(context: Context, facts: Facts) -> dict[EnvPlace, str]:
    """Return yurt's folders on a site that may contain environments, by place; `tmpdir` is a copy of `scratch`."""
    found: dict[EnvPlace, str] = {"scratch": base_folder(context, facts), "tmpdir": base_folder(context, facts)}
    if facts.variables.get("HOME"):
        found["home"] = layout.home(facts.variables["HOME"])
    return found


def project_folder(context: Context, facts: Facts | None, label: str) -> str:
    """Return the folder of a project on a context."""
    folder = layout.project(base_folder(context, facts), label)
    if not folder.isprintable():
        character = next(each for each in folder if not each.isprintable())
        raise UserError(
            f"the folder for runs on '{context.name}' contains an unprintable character ({character!a}): {folder!r}",
            code="usage",
            hint=f"set `storage_dir` to a printable path with `yurt context edit {context.name}`",
        )
    return folder


def expand(context: Context, facts: Facts | None, path: str, key: str) -> str:
    """Expand ~ and variables in the path of a setting, with their values on the context."""
    if facts is None:
        return expand_locally(path)
    try:
        return facts.expand(path)
    except KeyError as error:
        variable = error.args[0]
        raise UserError(
            f"{key} of context '{context.name}' uses ${variable}, which is not set on the site",
            code="config-invalid",
            hint=f"change it with `yurt context edit {context.name}`",
        ) from None


def expand_locally(path: str) -> str:
    return os.path.abspath(os.path.expandvars(os.path.expanduser(path)))
