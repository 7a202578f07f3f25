"""Queries several contexts in parallel for the expected starts of a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from yurt.contexts.fan_out import side_by_side
from yurt.errors import YurtError
from yurt.model.context import Context
from yurt.model.progress import Event, Watch
from yurt.model.where import Starts
from yurt.store import Store
from yurt.where.query import starts
from yurt.where.wanted import Wanted

Request = Callable[[Context], tuple[Wanted, Sequence[str]]]
"""Returns what a request asks of a context, and the paths that must exist there."""


def everywhere(
    store: Store, chosen: Sequence[Context], request: Request, label: str, watch: Watch
) -> tuple[dict[str, Starts], dict[str, YurtError]]:
    """Return the starts of each context that responds and takes the request, and the error of each of the others."""
    found: dict[str, Starts] = {}
    failed: dict[str, YurtError] = {}
    wanted: Mapping[str, tuple[Wanted, Sequence[str]]] = {each.name: request(each) for each in chosen}
    watch(Event(f"querying {', '.join(wanted)}"))

    def one(context: Context) -> None:
        what, paths = wanted[context.name]
        try:
            with store.twin() as index:
                found[context.name] = starts(index, what, label, paths=paths)
        except YurtError as error:
            failed[context.name] = error

    if chosen:
        side_by_side(one, chosen)
    return found, failed


def why(context: str, error: YurtError) -> str:
    """Return the message of an error of a context, without its name."""
    return error.message.removeprefix(f"{context}: ").removeprefix(f"{context} ")
