"""data ls: list files and folders of a context."""

from __future__ import annotations

import msgspec

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
