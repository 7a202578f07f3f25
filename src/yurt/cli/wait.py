"""`yurt wait RUN…`: until runs have ended."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from yurt.cli import app, render
from yurt.cli.app import run_names, verb
from yurt.cli.filters import FILTER, counted, folded

EXAMPLES = [
    "yurt wait -",
    "yurt wait x7q4z 8m2kd --timeout 600 && echo all well",
    "yurt wait @last-sweep --filter lr=0.1",
]


@verb(examples=EXAMPLES)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=run_names)
@click.option("--timeout", metavar="SECONDS", type=click.FloatRange(0), help="Give up waiting after this time.")
@FILTER
def wait(runs: tuple[str, ...], timeout: float | None, filters: tuple[str, ...]) -> int:
    """Wait until runs have ended. The exit code is 0 if all were completed, else 1; 4 if the time was over.

    With --filter it is tasks of sweeps that one waits for: those that pass it when the waiting begins.
    """
    return wait_for(runs, kind="runs-ended", filters=filters, timeout=timeout)


def wait_for(runs: Sequence[str], *, kind: str, filters: Sequence[str] = (), timeout: float | None = None) -> int:
    """Wait for runs and say how they ended; returns the exit code."""
    from yurt.cli.progress import watching
    from yurt.model.progress import Event
    from yurt.verbs import wait as verbs

    app.stay()
    now = app.current()
    told: set[str] = set()
    with watching() as watch:

        def on_refresh(entries: list[Any], warnings: list[str]) -> None:
            done = sum(entry.status.final for entry in entries)
            states = ", ".join(sorted({entry.status.state for entry in entries if not entry.status.final}))
            watch(Event(f"{len(entries) - done} to go ({states})", done, len(entries)))
            for line in warnings:
                if line not in told and not now.json and not now.quiet:
                    print(f"yurt: {line}; waiting goes on", file=sys.stderr)
                told.add(line)

        done = verbs.wait(runs, filters=filters, timeout=timeout, on_refresh=on_refresh)
    entries = done.data

    def for_people() -> None:
        for name, places in folded([entry.run.id for entry in entries]).items():
            if len(places) > 1:
                states = counted(entries[at].status.state for at in places)
                print(f"{name}: {len(places)} tasks, {states}", file=sys.stderr)
                continue
            entry = entries[places[0]]
            status = entry.status
            took = f" after {render.span(status.ended - status.started)}" if status.ended and status.started else ""
            why = f": {status.reason}" if status.reason not in ("", status.state) else ""
            print(f"{entry.run.id} {status.state}{took}{why}", file=sys.stderr)

    now.warnings += done.warnings
    render.show(kind, entries if kind != "run" else entries[0], for_people)
    return done.exit_code
