"""`yurt home status`: when the homes were synced, and conflicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yurt.cli import render
from yurt.cli.app import verb

if TYPE_CHECKING:
    from yurt.homes.status import HomeStatus, PairStatus


@verb(examples=["yurt home status", "yurt home status --json"], context_help="")
def status() -> int:
    """Show when the homes were synced, and conflicts.

    Shows each home with its last good sync and the result of the last one, as recorded on this machine. Pending files
    are those of this machine that are new or changed since; what was deleted, and what changed elsewhere, shows in the
    next sync. Runs that wait for a sync are listed below. The exit code is 1 if there are conflicts, or if the last
    sync of a home did not succeed.
    """
    from yurt.homes import status as verbs

    found = verbs.status()
    return render.result(found, lambda: _print(found.data), requested=True)


def _print(found: HomeStatus) -> None:
    folder = f", folder {found.folder}" if found.folder else ""
    print(render.plain(f"hub: {found.hub}{folder}"))
    titles = ["place", "in sync", "last sync", "took", "conflicts", "pending"]
    rows = [
        [
            each.place,
            render.moment(each.synced) or "never",
            _result(each),
            "" if each.seconds is None else f"{each.seconds:.1f} s",
            str(each.conflicts + len(each.deletions)),
            "" if each.pending is None else str(each.pending),
        ]
        for each in found.pairs
    ]
    render.table(titles, rows, folds=["in sync", "last sync"])
    if any(each.conflicts or each.deletions for each in found.pairs):
        print("see the conflicts with `yurt home conflicts`")
    for run in dict.fromkeys(run for each in found.pairs for run in each.waiting):
        print(render.plain(f"run {run} waits for a home sync"))


def _result(each: PairStatus) -> str:
    if each.code is None:
        return ""
    at = f"{render.moment(each.tried)}: " if each.tried and each.tried != each.synced else ""
    if each.code > 2:
        return at + each.problem.removeprefix(f"{each.place}: ")
    words = render.count(each.transferred, "change") if each.transferred else "no changes"
    if each.failed or each.deletions:
        words += f"; {each.problem}"
    return at + words
