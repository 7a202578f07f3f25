"""serve list: the services that have not ended."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from yurt.cli import call, render
from yurt.cli.declare import verb
from yurt.config import contexts
from yurt.contexts import connect, folders
from yurt.errors import YurtError
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.steps import STEPS
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result
from yurt.services import find
from yurt.services import status as statuses
from yurt.services.status import ServiceStatus
from yurt.services.views import Service, service
from yurt.store import Entry

if TYPE_CHECKING:
    from yurt.services.views import Service


def services(*, context: str = "", watch: Watch = unwatched) -> Result[list[Service]]:
    """Return the unfinished services, of one context or of all. A site that does not respond is a warning."""
    store = folders.store()
    if context:
        contexts.site(context)
    known = [entry for entry in find.unfinished(store) if context in ("", entry.run.context)]
    names = sorted({entry.run.context for entry in known})
    warnings: list[str] = []
    failed: set[str] = set()
    if names:
        watch(Event(f"querying {', '.join(names)}"))
        refreshed = refresh_contexts(store, names, steps=STEPS)
        warnings, failed = refreshed.warnings, set(refreshed.failed)
        known = [entry for entry in find.unfinished(store) if entry.run.context in names]
    found = []
    for entry in known:
        status = None if entry.run.context in failed else _status(entry, warnings)
        found.append(service(entry, status))
    return Result(kind="services", data=found, warnings=warnings, exit_code=4 if failed else 0)


def _status(entry: Entry, warnings: list[str]) -> ServiceStatus | None:
    if entry.status.state != "running":
        return None
    try:
        files = connect.named_backend(entry.run.context).files
        return statuses.read(files.read(entry.run.folder, statuses.FILE))
    except YurtError as error:
        warnings.append(error.message)
        return None


@verb(
    examples=["yurt serve list", "yurt serve list --json"], context_help="Only services on this context.", name="list"
)
def list_command() -> int:
    """List services.

    Shows the services that have not ended, of all projects.
    """
    from yurt.cli.progress import watching_late

    with watching_late() as watch:
        found = services(context=call.current().context, watch=watch)
    return render.result(found, lambda: _print(found.data), requested=True)


def _print(found: Sequence[Service]) -> None:
    if not found:
        print("no services; start one with `yurt serve jupyter`")
        return
    from yurt.cli.listing import listing

    columns = ["name", "run", "context", "state", "node", "time left", "command"]
    rows = [
        [
            each.name,
            each.run,
            each.context,
            render.with_reason(each.phase or each.state, each.reason),
            each.node,
            "" if each.ends is None else render.span(max(0.0, each.ends - time.time())),
            " ".join(each.command),
        ]
        for each in found
    ]
    listing(
        columns,
        rows,
        styles=[""] * len(rows),
        styled="",
        shrinks=["state", "command"],
        drops=["command", "time left", "node", "context"],
    )
