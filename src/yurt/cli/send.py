"""Shared by `run` and `retry`: messages about submitted runs, and waiting for them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from yurt.cli import app, render

if TYPE_CHECKING:
    from yurt.store import Entry


@contextmanager
def on_interrupt() -> Iterator[Callable[[str], None]]:
    """Yield a callback for each saved run. After Ctrl-C, print what happens to the last one."""
    saved: list[str] = []
    try:
        yield saved.append
    except KeyboardInterrupt:
        for run in saved[-1:]:
            print(
                f"\nyurt: interrupted; run {run} is saved, and the next yurt command submits it if necessary\n"
                f"  hint: cancel it with `yurt cancel {run}`",
                file=sys.stderr,
            )
        raise


def wait_or_follow(entries: Sequence[Entry], *, follow: bool, kind: str) -> int:
    """Wait until runs have finished, with `follow` show their output, and return the exit code."""
    from yurt.cli.wait import wait_for

    now = app.current()
    now.warnings.clear()
    if follow and not now.json:
        from yurt.cli.logs import Printer
        from yurt.verbs.logs import follow_started

        app.enable_gc()
        with Printer() as printer:
            follow_started([entry.run for entry in entries], printer)
    return wait_for([entry.run.id for entry in entries], kind=kind)


def submitted_line(entry: Entry) -> str:
    """Return one line about a new run: its id, state, context and job."""
    from yurt.verbs.run import job_number

    run, status = entry.run, entry.status
    job = f", job {number}" if (number := job_number(entry)) else ""
    state = {"queued": "submitted"}.get(status.state, status.state)
    building = ""
    if status.building and run.env is not None:
        packages = f": {render.count(run.env.packages, 'package')}" if run.env.packages else ""
        modules = "".join(f", with module {each}" for each in run.env.modules)
        modules += f", with PyTorch for {run.env.torch}" if run.env.torch else ""
        building = f"; building the environment of {run.env.title} there, once{modules}{packages}"
    return render.escaped(f"{run.id} {state} on {run.context}{job}{building}")
