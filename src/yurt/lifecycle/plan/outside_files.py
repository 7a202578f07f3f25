"""Files of this machine that a project names and that are not in it: the user agrees to each before it is read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from yurt.config import paths, trust
from yurt.errors import UnconfirmedError, in_one_line
from yurt.sites.project import Project


def check(project: Project, files: Iterable[Path], where: str) -> None:
    """Raise UnconfirmedError for files and folders outside the project that the user has not agreed to."""
    outside = [os.path.realpath(each) for each in files if not is_in(project, each)]
    known = trust.of(project.label, str(project.folder)).files if outside else []
    new = [each for each in outside if not any(_below(each, other) for other in known)]
    if new:
        typed = ((in_one_line(paths.as_typed(each)), is_secret(Path(each))) for each in new)
        shown = " and ".join(f"{each}{SECRET if secret else ''}" for each, secret in typed)
        raise UnconfirmedError(f"{where} names {shown}, outside the project {project.name}", kind="file", names=new)


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
