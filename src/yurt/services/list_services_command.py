"""`yurt serve list`: the services."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from yurt.cli import app, render
from yurt.cli.app import verb

if TYPE_CHECKING:
    from yurt.services.views import Service


@verb(
    examples=["yurt serve list", "yurt serve list --json"], context_help="Only services on this context.", name="list"
)
def list_() -> int:
    """List services.

    Shows the services that have not ended, of all projects.
    """
    from yurt.cli.progress import watching_late
    from yurt.services import list_services as verbs

    with watching_late() as watch:
        found = verbs.services(context=app.current().context, watch=watch)
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
