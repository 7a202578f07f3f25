"""What `run` and `retry` share: whoever wants to stays until the runs have ended."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from yurt.cli import app

if TYPE_CHECKING:
    from yurt.store import Entry


@contextmanager
def keeping() -> Iterator[Callable[[str], None]]:
    """Yields what is to be told of each run that is kept; says of the last one what becomes of it after Ctrl-C."""
    kept: list[str] = []
    try:
        yield kept.append
    except KeyboardInterrupt:
        for run in kept[-1:]:
            print(
                f"\nyurt: run {run} is kept and goes out, if it has not; to end it: yurt cancel {run}", file=sys.stderr
            )
        raise


def stay(entries: Sequence[Entry], *, follow: bool, kind: str) -> int:
    """Wait until runs have ended, and show meanwhile what they write; returns the exit code."""
    from yurt.cli.wait import wait_for

    now = app.current()
    now.warnings.clear()
    if follow and not now.json:
        from yurt.cli.logs import Printer
        from yurt.verbs.logs import follow_started

        app.stay()
        follow_started([entry.run for entry in entries], Printer())
    return wait_for([entry.run.id for entry in entries], kind=kind)


def say(entry: Entry) -> str:
    """A run that was sent, in a line."""
    from yurt.verbs.run import job_number

    run, status = entry.run, entry.status
    job = f", job {number}" if (number := job_number(entry)) else ""
    state = {"queued": "submitted"}.get(status.state, status.state)
    return f"{run.id} {state} on {run.context}{job}"
