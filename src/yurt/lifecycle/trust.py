"""trust: what the user agrees to for the project around the working directory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from yurt.config import trust as recorded
from yurt.config.trust import Trusted
from yurt.contexts.project import Project
from yurt.envs import addresses
from yurt.envs.lock import normal
from yurt.errors import UnconfirmedError
from yurt.model.result import Result


def show() -> Result[Trusted]:
    """Return what this project may do."""
    project = Project()
    return _result(recorded.of(project.label, str(project.folder)))


def add(names: Sequence[str] = (), *, builds: Sequence[str] = (), writes: Sequence[str] = ()) -> Result[Trusted]:
    """Agree to addresses, to the upload of files or folders, to builds of packages on this machine, and to folders
    outside the project that its links may lead to."""
    project = Project()
    label, folder = project.label, str(project.folder)
    known = recorded.add(label, folder, "address", [addresses.plain(each) for each in names if "://" in each])
    files = [_real(each) for each in names if "://" not in each]
    known = recorded.add(label, folder, "file", files) if files else known
    known = recorded.add(label, folder, "write", map(_real, writes)) if writes else known
    known = recorded.add(label, folder, "build", map(normal, builds)) if builds else known
    return _result(known)


def _real(path: str) -> str:
    return os.path.realpath(Path(path).expanduser())


def agree(error: UnconfirmedError) -> None:
    """Agree to what an error is about."""
    project = Project()
    recorded.add(project.label, str(project.folder), error.kind, error.names)


def forget() -> Result[Trusted]:
    """Forget all of it."""
    project = Project()
    recorded.forget(project.label)
    return _result(Trusted(str(project.folder)))


def _result(known: Trusted) -> Result[Trusted]:
    return Result(kind="trusted", data=known)
