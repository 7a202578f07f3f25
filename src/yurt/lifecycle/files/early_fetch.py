"""Uses the result of an rsync that was started early, without importing what starts one.

Only for the usual case: it has fetched the outputs of this run, soon and without an error. Otherwise the caller fetches
the run, which then takes over the same rsync.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from yurt import fetch_ahead
from yurt.lifecycle.files import local_copy
from yurt.model import layout, rsync_totals
from yurt.model.files import Brought, Contents, marked_contents
from yurt.model.run import Run

SECONDS = 1.0
"""How long to wait: after that, progress has to be shown."""


class EarlyFetch(msgspec.Struct, frozen=True):
    """What an early rsync has fetched."""

    contents: Contents
    brought: Brought
    recorded: bytes
    """The record of the files on this machine; see `local_copy`."""


def finished(run: Run, target: Path) -> EarlyFetch | None:
    """Return the contents of a run, and what an early rsync has fetched of it; None: fetch it."""
    if not fetch_ahead.is_started():
        return None
    path = str(target.absolute())
    errors = fetch_ahead.settled(f"host:{run.folder}/{layout.OUTPUTS}/", f"{path}/", SECONDS)
    contents = marked_contents(errors, fetch_ahead.contents_mark(), run.folder) if errors is not None else None
    if contents is None:
        return None
    recorded = local_copy.record(path)  # while rsync waits for its remote shell
    output = fetch_ahead.finished(SECONDS)
    lines = output.replace("\r", "\n").split("\n") if output is not None else []
    totals = {name: (number, kinds) for name, number, kinds in filter(None, map(rsync_totals.total, lines))}
    if not all(each in totals for each in rsync_totals.FETCHED):
        return None
    fetch_ahead.done()
    brought = Brought(
        files=totals[rsync_totals.TRANSFERRED][0] + totals[rsync_totals.CREATED][1].get("link", 0),
        size=totals[rsync_totals.SIZE][0],
        matched=sum(totals[rsync_totals.FILES][1].get(kind, 0) for kind in ("reg", "link")),
    )
    return EarlyFetch(contents, brought, recorded)
