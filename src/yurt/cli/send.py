"""What `run` and `retry` share: a plan is handed over, and whoever wants to stays until the run has ended."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from yurt.cli import app

if TYPE_CHECKING:
    from yurt.lifecycle.plan.plan import Planned
    from yurt.model.context import Context
    from yurt.model.progress import Watch
    from yurt.store import Entry, Store


def send(index: Store, context: Context, planned: Planned, watch: Watch) -> Entry:
    """Keep a plan and submit it. What there is to warn of is added to the warnings of this call."""
    from yurt.verbs import run as verbs

    try:
        entry, warnings = verbs.run(index, context, planned, watch=watch)
    except KeyboardInterrupt:
        run_id = planned.plan.run.id
        print(
            f"\nyurt: run {run_id} is kept and goes out, if it has not; to end it: yurt cancel {run_id}",
            file=sys.stderr,
        )
        raise
    app.current().warnings += warnings
    return entry


def stay(index: Store, entries: Sequence[Entry], *, follow: bool, kind: str) -> int:
    """Wait until runs have ended, and show meanwhile what they write; returns the exit code."""
    from yurt.cli.logs import Printer
    from yurt.cli.wait import wait_for

    now = app.current()
    now.warnings.clear()
    if follow and not now.json:
        from yurt.verbs.logs import follow_runs

        app.stay()
        follow_runs(index, [entry.run for entry in entries], Printer())
    return wait_for(index, [entry.run.id for entry in entries], kind=kind)


def say(entry: Entry) -> str:
    """A run that was sent, in a line."""
    from yurt.backends.kinds import kind_of

    run, status = entry.run, entry.status
    job = f", job {status.job}" if status.job and kind_of(run.context_type).scheduler else ""
    state = {"queued": "submitted"}.get(status.state, status.state)
    return f"{run.id} {state} on {run.context}{job}"
