"""Files of this machine outside a project that the project names, or that its links lead to.

The user agrees to each before it is read or written.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from yurt.config import paths
from yurt.errors import UnconfirmedError, in_one_line

if TYPE_CHECKING:
    from yurt.contexts.project import Project


def check(project: Project, files: Iterable[Path], where: str) -> None:
    """Raise UnconfirmedError for files and folders outside the project that the user has not agreed to."""
    from yurt.config import trust

    outside = [os.path.realpath(each) for each in files if not is_in(project, each)]
    known = trust.of(project.label, str(project.folder)).files if outside else []
    new = [each for each in outside if not any(_below(each, other) for other in known)]
    if new:
        typed = ((in_one_line(paths.as_typed(each)), is_secret(Path(each))) for each in new)
        shown = " and ".join(f"{each}{SECRET if secret else ''}" for each, secret in typed)
        raise UnconfirmedError(f"{where} names {shown}, outside the project {project.name}", kind="file", names=new)


def check_target(target: Path) -> None:
    """Raise UnconfirmedError if a link of the project leads a path to write to out of it, where the user has not agreed
    to that. A path outside the project that the user has typed is not one."""
    _check_links(target, "write")


def check_source(source: Path) -> None:
    """The same of a path to upload: a link such as `data` could lead to `~/.ssh`."""
    _check_links(source, "file")


def _check_links(typed: Path, kind: Literal["write", "file"]) -> None:
    try:
        path = Path.cwd() / typed
    except FileNotFoundError:  # so there is no project around it
        return
    if os.path.realpath(path) == str(path):  # no link, as usual: saves the imports
        return
    from yurt.config import trust
    from yurt.contexts.project import Project

    project = Project()
    for each in reversed([path, *path.parents]):
        if each.is_symlink() and is_in(project, each.parent) and not is_in(project, each):
            real = os.path.realpath(each)
            agreed = trust.of(project.label, str(project.folder))
            if not any(_below(real, other) for other in (agreed.writes if kind == "write" else agreed.files)):
                shown, link = in_one_line(paths.as_typed(real)), in_one_line(os.path.relpath(each, project.folder))
                secret = SECRET if kind == "file" and is_secret(Path(real)) else ""
                raise UnconfirmedError(
                    f"'{link}' is a link to {shown}{secret}, outside the project {project.name}",
                    kind=kind,
                    names=[real],
                )


def is_in(project: Project, path: Path) -> bool:
    """Whether a file or folder is really in a project, and not only by a link or by `..`."""
    return _below(os.path.realpath(path), os.path.realpath(project.folder))


SECRET = " (which looks like a secret)"


def is_secret(path: Path) -> bool:
    """Whether a path is one of credentials or keys."""
    from yurt.snapshot import secrets

    return secrets.is_path(os.path.realpath(path))


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
