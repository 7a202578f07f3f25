"""`yurt storage show [CONTEXT…]`: the storage tiers of contexts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from yurt.cli import app, render
from yurt.cli.app import context_names, verb
from yurt.cli.deletion import deletion

if TYPE_CHECKING:
    from yurt.model.storage import TierPlace, TierUse
    from yurt.storage.storage import ContextStorage, TierRow

SHARED = {"all": "all nodes", "node": "each node", "here": "this machine"}
"""Which nodes see the files of a tier."""

BAR = 10
"""Width of a bar."""

NEAR, FULL = 0.8, 0.95
"""Parts of a quota from which a bar is yellow, and red."""


@verb(examples=["yurt storage show", "yurt storage show alpha beta", "yurt storage show --yurt --json"])
@click.argument("names", nargs=-1, metavar="[CONTEXT]...", shell_complete=context_names)
@click.option("--yurt", "own", is_flag=True, help="Also measure what yurt uses: runs, code, environments and others.")
def show(names: tuple[str, ...], own: bool) -> int:
    """Show storage tiers, how full they are, and what expires.

    Shows the folders of each CONTEXT, or of the current context: what they are for, which nodes see them, your use and
    quota if the site reports them, and else those of the whole file system, and when the site deletes files. Below them
    are the finished runs that the site will delete first, of those whose results are nowhere else.

    The tiers are found with the variables of the site, such as SCRATCH. Change or add some with the context keys
    `tiers`, `tier_purge` and `tier_quota`; `storage_report` is a command of the site whose output is shown, too.
    """
    from yurt.cli.progress import watching
    from yurt.storage import storage as verbs

    with watching() as watch:
        found = verbs.storage(names, context=app.current().context, own=own, watch=watch)

    def print_text() -> None:
        for at, each in enumerate(found.data):
            if at:
                print()
            _print(each, titled=len(found.data) > 1)

    return render.result(found, print_text, requested=True)


def _print(found: ContextStorage, *, titled: bool) -> None:
    from yurt.cli.listing import listing

    if titled:
        print(render.plain(f"{found.context}:"))
    if not found.tiers:
        print("no storage tiers are known; add some with the context key `tiers`")
    else:
        columns = ["tier", "space", "used", "files", "deleted after", "shared by", "path", "for"]
        rows = [
            [
                each.place.name + ("*" if each.yurt else ""),
                _bar(_part(each)),
                _space(each),
                _files(each),
                "" if each.place.purge_days is None else f"{each.place.purge_days} days",
                SHARED[each.place.shared],
                _where(each.place, each.use),
                each.place.purpose,
            ]
            for each in found.tiers
        ]
        listing(
            columns,
            rows,
            styles=[_style(_part(each)) for each in found.tiers],
            styled="space",
            shrinks=["path", "for"],
            drops=["for", "shared by", "files", "space"],
        )
        if any(each.yurt for each in found.tiers):
            print("* yurt stores its runs here")
    _print_own(found)
    _print_purged(found)
    if found.report:
        print()
        print(render.plain(found.report))


def _print_own(found: ContextStorage) -> None:
    if not found.own:
        return
    size, files = sum(each.bytes for each in found.own), sum(each.files for each in found.own)
    at_least = "at least " if found.own_partly else ""
    print(f"yurt uses {at_least}{render.amount(size)} in {_short(files)} files: ", end="")
    print(", ".join(f"{each.kind} {render.amount(each.bytes)} in {_short(each.files)}" for each in found.own))
    if found.own_partly:
        print("there are more files than could be counted in 20 seconds")


def _print_purged(found: ContextStorage) -> None:
    only = [each for each in found.purged if not each.saved]
    if not only:
        return
    first, count = only[0], len(only)
    more = f", and {count - 1} more later" if count > 1 else ""
    when = deletion(first.at, time.time()).removeprefix("deleted ")
    name = f" ({first.name})" if first.name else ""
    print(render.plain(f"deleted next: run {first.run}{name} on {first.tier}, {when}{more}"))
    print(f"copy it with `yurt storage keep {first.run}` or `yurt fetch {first.run}`")


def _part(row: TierRow) -> float | None:
    """Return which part of the quota, else of the file system, is used: bytes or files, whichever is more.

    None if there is a quota and the site does not report what you use: the file system says nothing about that.
    """
    place, use = row.place, row.use
    if (place.quota or place.files_quota) and use is not None and use.quota is None:
        return None
    parts = [
        used / limit
        for used, limit in (_bytes(row.place, row.use), _count(row.place, row.use))
        if used is not None and limit
    ]
    return max(parts, default=None)


def _bytes(place: TierPlace, use: TierUse | None) -> tuple[int | None, int | None]:
    """Return the bytes that are used, and how many there may be: yours if there is a quota, else those of everyone."""
    if use is None:
        return None, None
    if use.quota is not None and use.quota.used is not None:
        return use.quota.used, use.quota.limit or place.quota or use.total
    if place.quota:
        return None, place.quota  # the site reports no use of yours
    if use.total is None or use.free is None:
        return None, None
    return use.total - use.free, use.total


def _count(place: TierPlace, use: TierUse | None) -> tuple[int | None, int | None]:
    if use is None:
        return None, None
    if use.quota is not None and use.quota.files is not None:
        return use.quota.files, use.quota.files_limit or place.files_quota
    if place.files_quota:
        return None, place.files_quota
    if not use.files_total or use.files_free is None:
        return None, None
    return use.files_total - use.files_free, use.files_total


def _space(row: TierRow) -> str:
    used, limit = _bytes(row.place, row.use)
    if row.use is not None and not row.use.there:
        return "not there"
    if used is None:
        return f"quota {render.amount(limit)}" if limit else ""
    return f"{render.amount(used)} of {render.amount(limit)}" if limit else render.amount(used)


def _files(row: TierRow) -> str:
    used, limit = _count(row.place, row.use)
    if used is None:
        return f"quota {_short(limit)}" if limit else ""
    return f"{_short(used)} of {_short(limit)}" if limit else _short(used)


def _short(number: int) -> str:
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return str(number)


def _bar(part: float | None) -> str:
    if part is None:
        return ""
    filled = min(BAR, round(part * BAR))
    return f"{'#' * filled}{'.' * (BAR - filled)} {part:4.0%}"


def _style(part: float | None) -> str:
    return "" if part is None or part < NEAR else "yellow" if part < FULL else "red"


def _where(place: TierPlace, use: TierUse | None) -> str:
    if place.path:
        return place.path + (" (read only)" if use is not None and use.there and not use.writable else "")
    return f"${place.variable} of each job" if place.variable else "on each node"
