"""Where things are kept, on this machine and on a context. Shared by the verbs of runs."""

from __future__ import annotations

import os
from pathlib import Path

from yurt.backends.base import Backend
from yurt.backends.registry import backend_of
from yurt.config import contexts, paths, project
from yurt.errors import UserError
from yurt.model import layout
from yurt.model.context import Context
from yurt.model.facts import Facts
from yurt.store import Store
from yurt.verbs import site


def store() -> Store:
    """The index of runs of whoever calls yurt."""
    return Store(f"{paths.data_home()}/yurt.db")


def known_store() -> Store | None:
    """The same, if there is one already."""
    return store() if os.path.exists(f"{paths.data_home()}/yurt.db") else None


def backend(context: Context) -> Backend:
    """The backend of a context. Asks the site only if nothing is known of it."""
    accounting = context.type == "slurm" and site.facts_of(context).accounting
    return backend_of(context, accounting=accounting, slots=paths.data_home() / "slots")


def named_backend(name: str) -> Backend:
    return backend(contexts.named(name))


def slots() -> set[str]:
    """Runs on this machine that wait for a slot or have one."""
    from yurt.backends.local import waiter

    folder = paths.data_home() / "slots"
    return {ticket["run"] for ticket in waiter.tickets(str(folder)).values()} if folder.is_dir() else set()


class Project:
    """The folder a user works in: where it is, what it is called, where in it they stand."""

    def __init__(self) -> None:
        here = Path.cwd()
        found = project.find(here)
        self.folder = found.folder if found is not None else _top(here)
        self.name = found.name if found is not None else self.folder.name
        self.label = layout.project_label(self.name, str(self.folder))
        relative = os.path.relpath(here, self.folder)
        self.subfolder = "" if relative == "." else relative
        self.code = paths.data_home() / "code" / f"{self.label}.git"


def _top(here: Path) -> Path:
    """The git repository around a folder, unless that is all of one's home; else the folder itself."""
    for folder in (here, *here.parents):
        if folder == Path.home() or folder == folder.parent:
            break
        if (folder / ".git").exists():
            return folder
    return here


def base_folder(context: Context, facts: Facts | None) -> str:
    """The folder of all that yurt keeps on a context."""
    if context.type == "local":
        return f"{expand_here(context.storage_dir)}/yurt" if context.storage_dir else str(paths.data_home())
    assert facts is not None
    return layout.base(site.storage_folder(context, facts))


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
