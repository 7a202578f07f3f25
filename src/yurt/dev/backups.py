"""dev backups: list the versions of a workspace; works without a running dev node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from yurt.cli import call, render
from yurt.cli.declare import argument, verb
from yurt.dev import find as dev_find
from yurt.dev.names import dev_names
from yurt.dev.words import named
from yurt.errors import NotFoundError
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result
from yurt.model.workspace import Version

if TYPE_CHECKING:
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


@verb(
    examples=["yurt dev backups", "yurt dev backups paper --context big", "yurt dev backups --json"],
    context_help="The context with the backups; by default that of the last dev node of this name.",
)
@argument("name", metavar="[NAME]", required=False, default="default", shell_complete=dev_names)
def backups_command(name: str) -> int:
    """List the backups of a workspace, newest first.

    Each version contains the whole workspace. Versions are on the shared disk of the site, so no dev node needs to run.
    Bring one back with `yurt dev restore --at VERSION`.
    """
    from yurt.cli.progress import watching_late

    with watching_late() as watch:
        found = backups(name, context=call.current().context, watch=watch)
    return render.result(found, lambda: _print(found.data), requested=True)


def _print(found: BackupList) -> None:
    from yurt.cli.listing import listing

    if not found.versions:
        print(f"no backups of dev node '{found.name}' on {found.context}")
        return
    columns = ["version", "when", "why", "files", "size", "new data", "node", "verified"]
    rows, notes = [_row(each) for each in found.versions], [_note(each) for each in found.versions]
    if not render.visual():  # a pipe gets one line for each version
        columns, rows, notes = [*columns, "notes"], [[*row, note] for row, note in zip(rows, notes, strict=True)], []
    listing(
        columns,
        rows,
        styles=[""] * len(rows),
        styled="",
        shrinks=["why"],
        drops=["node", "files", "new data", "verified", "size"],
        numbers=["files", "size", "new data"],
        notes=notes,
    )
    print(render.plain(f"{render.amount(found.size)} in {found.folder} on {found.context}"))


def _row(each: Version) -> list[str]:
    return [
        f"v{each.number}",
        render.moment(each.time),
        each.reason,
        str(each.files),
        render.amount(each.size),
        render.amount(each.new_size),
        each.host,
        "damaged" if each.damaged else "yes" if each.verified else "no",
    ]


def _note(each: Version) -> str:
    fork = f"fork of v{each.parent}" if each.fork else ""
    return "; ".join(part for part in (fork, each.note) if part)
