"""dev backups: list the versions of a workspace; works without a running dev node."""

from __future__ import annotations

import msgspec

from yurt.dev import find as dev_find
from yurt.dev.words import named
from yurt.errors import NotFoundError
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result
from yurt.model.workspace import Version


class BackupList(msgspec.Struct, frozen=True, kw_only=True):
    """The versions of a workspace on a site, newest first."""

    name: str
    context: str
    folder: str
    """The folder on the site that contains them."""
    size: int
    """Bytes on the disk of the site."""
    versions: list[Version]
    """All versions, newest first."""


def backups(name: str, *, context: str = "", watch: Watch = unwatched) -> Result[BackupList]:
    """Read the versions from the shared disk, in one request. NotFoundError: there are none, and never was a dev node.

    There may be none of a dev node that this machine has started.
    """
    watch(Event("reading the backups"))
    there = dev_find.backups(name, context)
    found = there.found
    if not found.versions and not dev_find.is_known(name):
        raise NotFoundError(
            f"there are no backups of dev node '{name}' on {there.context.name}",
            code="not-found",
            hint=f"start it with `yurt dev up{named(name)}`, or name the context of its backups with `--context`",
        )
    done = BackupList(
        name=name, context=there.context.name, folder=there.folder, size=found.size, versions=found.versions[::-1]
    )
    return Result(kind="dev-backups", data=done)
