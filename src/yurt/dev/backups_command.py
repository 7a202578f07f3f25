"""`yurt dev backups [NAME]`: the versions of a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from yurt.cli import app, render
from yurt.cli.app import verb
from yurt.dev.names import dev_names

if TYPE_CHECKING:
    from yurt.dev.backups import BackupList
    from yurt.model.workspace import Version


@verb(
    examples=["yurt dev backups", "yurt dev backups paper --context big", "yurt dev backups --json"],
    context_help="The context with the backups; by default that of the last dev node of this name.",
)
@click.argument("name", metavar="[NAME]", required=False, default="default", shell_complete=dev_names)
def backups(name: str) -> int:
    """List the backups of a workspace, newest first.

    Each version contains the whole workspace. Versions are on the shared disk of the site, so no dev node needs to run.
    Bring one back with `yurt dev restore --at VERSION`.
    """
    from yurt.cli.progress import watching_late
    from yurt.dev import backups as verbs

    with watching_late() as watch:
        found = verbs.backups(name, context=app.current().context, watch=watch)
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
