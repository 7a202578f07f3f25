"""storage: the storage tiers of contexts, how full they are, and what their sites delete next."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from yurt.cli import call, render
from yurt.cli.completers import context_names
from yurt.cli.declare import argument, option, verb
from yurt.cli.deletion import deletion
from yurt.config import contexts
from yurt.contexts import connect, folders
from yurt.contexts.facts import facts_if_probed
from yurt.contexts.fan_out import side_by_side
from yurt.errors import UserError, YurtError
from yurt.model.context import Context
from yurt.model.facts import Facts
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result
from yurt.model.storage import OwnUse, StorageReport, TierPlace, TierUse
from yurt.storage.purge import Purged, upcoming
from yurt.storage.tiers import of_path, tiers, unknown_names
from yurt.store import Store

if TYPE_CHECKING:
    from yurt.model.storage import TierPlace, TierUse


class TierRow(msgspec.Struct, frozen=True, kw_only=True):
    """A storage tier of a context: what is known of it, and how full it is."""

    place: TierPlace
    """What is known of it."""
    use: TierUse | None = None
    """Null if the site was not reached, or if the tier is in each job only."""
    yurt: bool = False
    """Whether yurt keeps its runs there."""


class ContextStorage(msgspec.Struct, frozen=True, kw_only=True):
    """The storage of a context."""

    context: str
    tiers: list[TierRow] = []
    """Its storage tiers."""
    report: str = ""
    """The output of the command `storage_report` of the context."""
    purged: list[Purged] = []
    """Finished runs that the site will delete, the next one first."""
    own: list[OwnUse] = []
    """With --yurt: what yurt uses there, the largest kind first."""
    own_partly: bool = False
    """Whether there was not enough time to count all of it."""


def storage(
    names: Sequence[str] = (), *, context: str = "", own: bool = False, watch: Watch = unwatched
) -> Result[list[ContextStorage]]:
    """Query contexts in parallel, by default the current one, in one request each.

    `own`: also measure what yurt uses. A site that does not respond is shown without figures, and a warning; the exit
    code is then 4.
    """
    chosen = [contexts.site(name) for name in dict.fromkeys(names or [contexts.current_name(context)])]
    store = folders.store()
    found: dict[str, ContextStorage] = {}
    failed: dict[str, YurtError] = {}
    warnings: list[str] = []
    watch(Event(f"querying {', '.join(each.name for each in chosen)}"))

    def one(place: Context) -> None:
        with store.twin() as index:
            found[place.name], error, notes = _look(index, place, own=own, alone=len(chosen) == 1)
        if error is not None:
            failed[place.name] = error
        warnings.extend(notes)

    side_by_side(one, chosen)
    warnings += [f"cannot query {name}: {error.message}" for name, error in failed.items()]
    code = max((error.exit_code for error in failed.values()), default=0)
    data = [found[each.name] for each in chosen]
    return Result(kind="storage", data=data, warnings=warnings, exit_code=code)


def _look(
    store: Store, context: Context, *, own: bool, alone: bool
) -> tuple[ContextStorage, YurtError | None, list[str]]:
    """Return the storage of a context, why its site was not queried, and warnings."""
    error: YurtError | None = None
    report = StorageReport(tiers=[])
    places: list[TierPlace] = []
    base = ""
    try:
        facts = facts_if_probed(context)
        places = tiers(context, facts)
        base = folders.base_folder(context, facts)
        backend = connect.backend(context)
        connect.check_responds(context, backend, alone=alone)
        measured = _own_folders(context, base, facts) if own else []
        report = backend.site.storage([each for each in places if each.path], context.storage_report or "", measured)
    except UserError:
        raise  # a setting about tiers is invalid
    except YurtError as problem:
        error = problem
    uses = {each.name: each for each in report.tiers}
    tier = of_path(places, base) if base else None
    rows = [
        TierRow(place=each, use=uses.get(each.name), yurt=tier is not None and each.name == tier.name)
        for each in places
    ]
    notes = unknown_names(context, places) if places else []
    if report.failed:
        notes.append(f"{context.name}: the command `storage_report` failed: {report.failed}")
    entries = store.newest(where={"context": [context.name]})
    made = ContextStorage(
        context=context.name,
        tiers=rows,
        report=report.report,
        purged=upcoming(store, entries, places, time.time()),
        own=report.own,
        own_partly=report.own_partly,
    )
    return made, error, notes


def _own_folders(context: Context, base: str, facts: Facts | None) -> list[str]:
    """Return the folders of yurt on a site, each once."""
    return list(dict.fromkeys([base, *(folders.env_folders(context, facts).values() if facts is not None else ())]))


SHARED = {"all": "all nodes", "node": "each node", "here": "this machine"}
"""Which nodes see the files of a tier."""

BAR = 10
"""Width of a bar."""

NEAR, FULL = 0.8, 0.95
"""Parts of a quota from which a bar is yellow, and red."""


@verb(examples=["yurt storage show", "yurt storage show alpha beta", "yurt storage show --yurt --json"])
@argument("names", nargs=-1, metavar="[CONTEXT]...", shell_complete=context_names)
@option("--yurt", "own", is_flag=True, help="Also measure what yurt uses: runs, code, environments and others.")
def show_command(names: tuple[str, ...], own: bool) -> int:
    """Show storage tiers, how full they are, and what expires.

    Shows the folders of each CONTEXT, or of the current context: what they are for, which nodes see them, your use and
    quota if the site reports them, and else those of the whole file system, and when the site deletes files. Below them
    are the finished runs that the site will delete first, of those whose results are nowhere else.

    The tiers are found with the variables of the site, such as SCRATCH. Change or add some with the context keys
    `tiers`, `tier_purge` and `tier_quota`; `storage_report` is a command of the site whose output is shown, too.
    """
    from yurt.cli.progress import watching

    with watching() as watch:
        found = storage(names, context=call.current().context, own=own, watch=watch)

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
