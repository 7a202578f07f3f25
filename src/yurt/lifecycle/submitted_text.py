"""Shared by `run` and `retry`: messages about submitted runs, and waiting for them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from yurt.cli import call, render

if TYPE_CHECKING:
    from yurt.store import Entry


class Sending:
    """The runs that a command submits."""

    def __init__(self, line: Callable[[Entry], str]) -> None:
        self._line = line
        self.saved: list[str] = []
        self.held: dict[str, str] = {}
        """The context of each run that waits for the home sync that is under way."""

    def on_kept(self, run: str) -> None:
        """Note a saved run."""
        self.saved.append(run)

    def on_held(self, entry: Entry) -> None:
        """Say that a run is submitted before the sync that it waits for, which may take long."""
        self.held[entry.run.id] = entry.run.context
        now = call.current()
        if not (now.json or now.quiet):
            print(self._line(entry), flush=True)


@contextmanager
def on_interrupt(line: Callable[[Entry], str]) -> Iterator[Sending]:
    """Yield callbacks for submitted runs; `line` describes one. After Ctrl-C, print what happens to the last one."""
    sending = Sending(line)
    try:
        yield sending
    except KeyboardInterrupt:
        if not sending.saved:
            print("\nyurt: interrupted; nothing was submitted", file=sys.stderr)
        for run in sending.saved[-1:]:
            if run in sending.held:
                happens = f"stays held until a home sync: `yurt home sync {sending.held[run]}`"
                hint = f"start it without a sync with `yurt release {run}`, or cancel it with `yurt cancel {run}`"
            else:
                happens = "is saved, and the next yurt command submits it if necessary"
                hint = f"cancel it with `yurt cancel {run}`"
            print(f"\nyurt: interrupted; run {run} {happens}\n  hint: {hint}", file=sys.stderr)
        raise


def wait_or_follow(entries: Sequence[Entry], *, follow: bool, kind: str) -> int:
    """Wait until runs have finished, with `follow` show their output, and return the exit code."""
    from yurt.lifecycle.wait import wait_for

    now = call.current()
    if not now.json:  # they are printed; the envelope has them at the end
        now.warnings.clear()
    try:
        if follow and not now.json:
            from yurt.lifecycle.logs import Printer, follow_started

            call.enable_gc()
            with Printer() as printer:
                follow_started([entry.run for entry in entries], printer)
        return wait_for([entry.run.id for entry in entries], kind=kind)
    except KeyboardInterrupt:
        names = " ".join(entry.run.id for entry in entries)
        continues = f"run {names} continues" if len(entries) == 1 else f"{len(entries)} runs continue"
        print(f"\nyurt: interrupted; {continues}\n  hint: cancel with `yurt cancel {names}`", file=sys.stderr)
        raise


def after_sync(entry: Entry) -> str:
    """Return one line about a run after the home sync that it waited for."""
    run, status = entry.run, entry.status
    if status.state == "held" or status.held:
        return render.escaped(f"{run.id} is {render.with_reason('held', status.held or status.reason)}")
    if status.building:
        return f"{run.id} waits for its environment"
    return render.escaped(f"{run.id} is released: the home of {run.context} is in sync")


def submitted_line(entry: Entry) -> str:
    """Return one line about a new run: its id, state, context and job."""
    run, status = entry.run, entry.status
    if run.race:
        from yurt.lifecycle.race import where

        return render.escaped(f"{run.id} {where(entry)}")
    job = f", job {number}" if (number := job_number(entry)) else ""
    state = {"queued": "submitted", **({"held": "submitted"} if run.home_sync else {})}.get(status.state, status.state)
    building = "; it starts after a home sync" if run.home_sync and status.state in ("held", "queued") else ""
    if status.building and run.env is not None:
        packages = f": {render.count(run.env.packages, 'package')}" if run.env.packages else ""
        modules = "".join(f", with module {each}" for each in run.env.modules)
        modules += f", with PyTorch for {run.env.torch}" if run.env.torch else ""
        building += f"; building the environment of {run.env.title} there, once{modules}{packages}"
    return render.escaped(f"{run.id} {state} on {run.context}{job}{building}")


def job_number(entry: Entry) -> str:
    """Return the scheduler's job id of a run; empty if the context has no scheduler."""
    from yurt.backends.kinds import kind_of

    return entry.status.job if kind_of(entry.run.context_type).scheduler else ""
