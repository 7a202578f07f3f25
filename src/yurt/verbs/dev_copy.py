"""Copies what a workspace is made from to a site: an archive of this machine, or a version from another context."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from yurt.config import contexts, precedence
from yurt.dev import configure, sources
from yurt.dev.sources import Source
from yurt.errors import NotFoundError
from yurt.model.context import Context
from yurt.model.progress import Event, Watch
from yurt.model.workspace import Version, Workspace
from yurt.sites import connect
from yurt.sites.facts import facts_if_probed


def uploaded(source: Source, place: Context, folder: str, watch: Watch) -> Source:
    """Upload an archive of this machine; return the source with its path on the site."""
    above, _, name = folder.rpartition("/")
    target, file = f"{above}/.from-{name}", sources.upload_name(source)
    archive = Path(source.upload)
    connect.backend(place).workspaces.send(target, file, archive, _moved(archive, place.name, watch))
    return msgspec.structs.replace(source, value=f"{target}/{file}", upload="")


def _moved(file: Path, site: str, watch: Watch) -> Callable[[int], None]:
    size = file.stat().st_size
    return lambda done: watch(Event(f"uploading {file.name} to {site}", done, size, bytes=True))


def copied(source: Source, place: Context, folder: str, watch: Watch) -> int:
    """Copy a version of a workspace of another context into a backups folder of this one; return its number.

    A retry continues. The version is complete on the site, or not there.
    """
    origin, there, found = find(source)
    with tempfile.TemporaryDirectory(prefix="yurt-dev-") as temporary:
        here = Path(temporary)
        names = bring(origin, there, found.number, here, watch)
        backend = connect.backend(place)
        for file in names:  # the version file last: it makes the version
            backend.workspaces.send(folder, file, here / file, _moved(here / file, place.name, watch))
    return found.number


def find(source: Source) -> tuple[Context, str, Version]:
    """Return the context, the backups folder and the version that a source names. NotFoundError: there is none."""
    origin = contexts.site(source.value)
    wanted = precedence.as_context(origin.name, precedence.resolve(origin, {}))
    folder = configure.backups_folder(wanted, facts_if_probed(origin), source.desk)
    (there,) = connect.backend(origin).workspaces.look([folder])
    return origin, folder, chosen(there, source)


def chosen(there: Workspace, source: Source) -> Version:
    found = next((each for each in there.versions if each.number == source.version), None)
    found = there.newest if not source.version else found
    if found is None:
        what = f"version v{source.version}" if source.version else "backup"
        raise NotFoundError(
            f"there is no {what} of the workspace of dev node '{source.desk}' on {source.value}",
            code="not-found",
            hint=f"list them with `yurt dev backups {source.desk} --context {source.value}`",
        )
    return found


def bring(origin: Context, folder: str, number: int, target: Path, watch: Watch) -> list[str]:
    """Fetch the files that a version needs into a folder of this machine; return their names, the version last."""
    from yurt.node.backup import needs

    backend = connect.backend(origin)

    def progress(done: int, total: int) -> None:
        watch(Event(f"downloading v{number} from {origin.name}", done, total, bytes=True))

    backend.workspaces.bring(folder, [f"v{number}"], target, progress)
    while missing := [name for name in needs(str(target), number) if not (target / name).exists()]:
        backend.workspaces.bring(folder, missing, target, progress)
    return [*needs(str(target), number), f"v{number}"]
