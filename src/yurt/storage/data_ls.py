"""data ls: list files and folders of a context."""

from __future__ import annotations

import msgspec

from yurt.cli import call, render
from yurt.cli.declare import argument, verb
from yurt.config import contexts
from yurt.contexts.facts import facts_if_probed
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result
from yurt.storage.contents import DataEntry
from yurt.storage.spots import must_be_spot


class DataListed(msgspec.Struct, frozen=True, kw_only=True):
    """What is at a place of a context."""

    place: str
    """CONTEXT:PATH."""
    kind: str
    """What the place is: folder, file, link or other."""
    entries: list[DataEntry]
    """What a folder contains; otherwise the file itself."""


def ls(place: str = "", *, context: str = "", watch: Watch = unwatched) -> Result[DataListed]:
    """List a folder, or show a file, in one request. Without a place: the tier with data that the user keeps."""
    from yurt.storage import contents

    chosen = must_be_spot(place or _default(context), context, watch=watch)
    watch(Event(f"querying {chosen.context.name}"))
    kind, entries = contents.listed(chosen)
    return Result(kind="data-listed", data=DataListed(place=str(chosen), kind=kind, entries=entries))


def _default(context: str) -> str:
    """Return the tier `project` if the context has one, else its first tier."""
    from yurt.storage.tiers import tiers

    place = contexts.site(contexts.current_name(context))
    names = [each.name for each in tiers(place, facts_if_probed(place)) if each.path]
    return f"{'project' if 'project' in names or not names else names[0]}:"


@verb(examples=["yurt data ls", "yurt data ls project:datasets", "yurt data ls alpha:scratch: --json"])
@argument("place", metavar="[PLACE]", required=False, default="")
def ls_command(place: str) -> int:
    """List files on a context.

    Shows what is in the folder PLACE, with the number and the size of all files below each folder; by default in the
    tier `project`.
    """
    from yurt.cli.progress import watching_late

    with watching_late() as watch:
        found = ls(place, context=call.current().context, watch=watch)
    return render.result(found, lambda: _print(found.data), requested=True)


def _print(found: DataListed) -> None:
    from yurt.cli.listing import listing

    if not found.entries:
        print(render.plain(f"{found.place} is empty"))
        return
    rows = [
        [
            each.name + ("/" if each.kind == "folder" else ""),
            each.kind,
            f"{each.files:,}",
            render.amount(each.size),
            render.moment(each.modified) if each.modified else "",
        ]
        for each in found.entries
    ]
    listing(
        ["name", "kind", "files", "size", "modified"],
        rows,
        styles=[""] * len(rows),
        styled="name",
        shrinks=["name"],
        drops=["kind", "modified", "files"],
        numbers=["files", "size"],
    )
