"""Uses the result of an rsync that was started early, without importing what starts one.

Only for the usual case: it has fetched the outputs of this run, soon and without an error. Otherwise the caller fetches
the run, which then takes over the same rsync.
"""

from __future__ import annotations

from pathlib import Path

from yurt import fetch_ahead
from yurt.model import layout, rsync_totals
from yurt.model.files import Brought, Contents, marked_contents
from yurt.model.run import Run

SECONDS = 1.0
"""How long to wait: after that, progress has to be shown."""


def finished(run: Run, target: Path) -> tuple[Contents, Brought | None] | None:
    """Return the contents of a run, and what an early rsync has fetched of it; None: fetch it."""
    found = fetch_ahead.finished(f"host:{run.folder}/{layout.OUTPUTS}/", f"{target.absolute()}/", SECONDS)
    if found is None:
        return None
    output, errors = found
    lines = output.replace("\r", "\n").split("\n")
    totals = {name: (number, kinds) for name, number, kinds in filter(None, map(rsync_totals.total, lines))}
    contents = marked_contents(errors, fetch_ahead.contents_mark(), run.folder)
    if contents is None or not all(each in totals for each in rsync_totals.FETCHED):
        return None
    fetch_ahead.done()
    return contents, Brought(
        files=totals[rsync_totals.TRANSFERRED][0] + totals[rsync_totals.CREATED][1].get("link", 0),
        size=totals[rsync_totals.SIZE][0],
        matched=sum(totals[rsync_totals.FILES][1].get(kind, 0) for kind in ("reg", "link")),
    )
