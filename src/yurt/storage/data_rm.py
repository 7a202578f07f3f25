"""data rm: remove files and folders of a context."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import msgspec

from yurt.cli import call, render
from yurt.cli.ask import confirm
from yurt.cli.declare import argument, option, verb
from yurt.errors import UserError
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result
from yurt.storage.spots import Spot, must_be_spot


class Removable(msgspec.Struct, frozen=True, kw_only=True):
    """A file or folder that `yurt data rm` removes."""

    place: str
    """CONTEXT:PATH."""
    kind: str
    """folder, file, link or other."""
    files: int
    """Number of files and links."""
    size: int
    """Their bytes."""


class DataRemoved(msgspec.Struct, frozen=True, kw_only=True):
    """What was removed."""

    places: list[Removable]
    """The files and folders."""


def survey(places: Sequence[str], *, context: str = "", watch: Watch = unwatched) -> Result[DataRemoved]:
    """Return what would be removed, in one request for each context. RefusedError for a place that must stay."""
    from yurt.storage import contents

    rows: list[Removable] = []
    for group in _by_context(places, context, watch):
        watch(Event(f"querying {group[0].context.name}"))
        for spot, found in zip(group, contents.measured(group), strict=True):
            if found.kind == "missing":
                raise contents.missing(spot)
            rows.append(Removable(place=str(spot), kind=found.kind, files=found.files, size=found.size))
    return Result(kind="data-removed", data=DataRemoved(places=rows))


def rm(
    found: DataRemoved, places: Sequence[str], *, context: str = "", watch: Watch = unwatched
) -> Result[DataRemoved]:
    """Remove what `survey` found, in one request for each context. Links are not followed. Safe to repeat."""
    from yurt.storage import contents

    for group in _by_context(places, context, watch):
        watch(Event(f"removing from {group[0].context.name}"))
        contents.remove(group, {each.place: each.files for each in found.places})
    return Result(kind="data-removed", data=found)


def _by_context(places: Sequence[str], context: str, watch: Watch) -> list[list[Spot]]:
    groups: dict[str, list[Spot]] = {}
    for each in dict.fromkeys(places):
        spot = must_be_spot(each, context, watch=watch)
        if spot.path == "/":
            raise UserError(f"'{each}' is the root of the file system", code="usage", hint="name a file or folder")
        groups.setdefault(spot.context.name, []).append(spot)
    return list(groups.values())


@verb(examples=["yurt data rm scratch:old", "yurt data rm -y project:a.csv project:b.csv"])
@argument("places", nargs=-1, required=True, metavar="PLACE...")
@option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
def rm_command(places: tuple[str, ...], yes: bool) -> int:
    """Remove files from a context.

    Shows how many files are removed and asks for confirmation. A link is removed, not what it points to. Storage tiers,
    the home and yurt's own folders are never removed; remove runs with `yurt prune`.
    """
    from yurt.cli.progress import watching_late
    from yurt.errors import RefusedError

    now = call.current()
    with watching_late() as watch:
        found = survey(places, context=now.context, watch=watch)
    if not yes:
        asks = not now.json and sys.stdin.isatty()
        if asks:
            _print(found.data, "")
        if not asks or not confirm("permanently remove this?"):
            raise RefusedError(
                "nothing was removed: it was not confirmed", code="not-confirmed", hint="confirm it with `--yes`"
            )
    with watching_late() as watch:
        done = rm(found.data, places, context=now.context, watch=watch)
    return render.result(done, lambda: _print(done.data, "removed "))


def _print(found: DataRemoved, start: str) -> None:
    for each in found.places:
        files = f"{each.files:,} file{'' if each.files == 1 else 's'}, {render.amount(each.size)}"
        print(render.plain(f"{start}{each.place} ({each.kind}): {files}"))
