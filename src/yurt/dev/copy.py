"""Copies what a workspace is made from to a site: an archive of this machine, or a version from another context."""

from __future__ import annotations

import os
import stat
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from yurt.contexts import connect
from yurt.dev import find as dev_find
from yurt.dev import moments, sources
from yurt.dev.find import Backups
from yurt.dev.sources import Source
from yurt.dev.words import named
from yurt.errors import NotFoundError
from yurt.model.context import Context
from yurt.model.progress import Event, Watch
from yurt.model.workspace import Version


def upload(source: Source, place: Context, folder: str, watch: Watch) -> None:
    """Upload an archive of this machine. The node removes it when it has made the workspace."""
    target, archive = sources.upload_folder(source, folder), Path(source.upload)
    connect.backend(place).workspaces.send(target, archive.name, archive, _moved(archive, place.name, watch))


def _moved(file: Path, site: str, watch: Watch) -> Callable[[int], None]:
    size = file.stat().st_size
    return lambda done: watch(Event(f"uploading {file.name} to {site}", done, size, bytes=True))


def find(source: Source) -> tuple[Backups, Version]:
    """Return the version of a workspace of another context that a source names. NotFoundError: there is none."""
    there = dev_find.backups(source.desk, source.value)
    at = f"v{source.version}" if source.version else ""
    try:
        version = moments.chosen(there.found.versions, at, time.time())
    except NotFoundError:
        raise NotFoundError(
            f"dev node '{source.desk}' has no {f'version {at}' if at else 'backup'} on {source.value}",
            code="not-found",
            hint=f"list its versions with `yurt dev backups{named(source.desk)} --context {source.value}`",
        ) from None
    dev_find.check_whole(there, version)
    return there, version


def copy(there: Backups, version: Version, place: Context, folder: str, watch: Watch) -> None:
    """Copy a version of a workspace of another context into a backups folder of this one.

    A retry continues. The version is complete on the site, or not there.
    """
    with tempfile.TemporaryDirectory(prefix="yurt-dev-") as temporary:
        here, backend = Path(temporary), connect.backend(place)
        bring(there, version.number, here, watch)
        for file in there.found.files[version.number]:  # the version file last: it makes the version
            backend.workspaces.send(folder, file, here / file, _moved(here / file, place.name, watch))


def bring(there: Backups, number: int, target: Path, watch: Watch, paths: Sequence[str] = ()) -> None:
    """Fetch the files that a version, or some paths of it, need into a folder of this machine.

    MissingPathError: the version has no such path.
    """
    names = there.found.files[number]
    if not paths:
        _bring(there, number, names, target, watch)
        return
    from yurt.node import backup

    _bring(there, number, [each for each in names if not each.startswith("p")], target, watch)
    if packs := backup.packs_of(str(target), number, paths):  # links and empty files need none
        _bring(there, number, packs, target, watch)


def _bring(there: Backups, number: int, names: Sequence[str], target: Path, watch: Watch) -> None:

    def progress(done: int, total: int) -> None:
        watch(Event(f"downloading v{number} from {there.context.name}", done, total, bytes=True))

    connect.backend(there.context).workspaces.bring(there.folder, names, target, progress)
    if missing := [name for name in names if not _is_file(target / name)]:
        dev_find.check_whole(there, next(each for each in there.found.versions if each.number == number))
        raise NotFoundError(
            f"{there.context.name}: {there.folder}/{missing[0]} does not exist; v{number} has been removed",
            code="not-found",
            hint="list the versions with `yurt dev backups`",
        )


def _is_file(path: Path) -> bool:
    """Whether a file was fetched, not a link to one of this machine. On some disks, a version file is a folder."""
    from yurt.node.backup import INSIDE

    if path.is_dir() and not path.is_symlink():
        path /= INSIDE
    return os.path.lexists(path) and stat.S_ISREG(path.lstat().st_mode)
