"""wait: wait until runs have finished."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from yurt.cli import call, render
from yurt.cli.completers import run_names
from yurt.cli.declare import argument, option, verb
from yurt.cli.filters import FILTER, counted, folded
from yurt.cli.values import Duration
from yurt.clocks import clocks, ending_by
from yurt.contexts import folders
from yurt.lifecycle.refresh.full_disk import checked
from yurt.lifecycle.refresh.local_ends import LocalEnds
from yurt.lifecycle.refresh.poll_interval import longest_pause, next_pause
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.select import meant
from yurt.lifecycle.steps import STEPS
from yurt.model import tally
from yurt.model.progress import Event
from yurt.model.result import Result
from yurt.model.tally import main_reason
from yurt.store import Entry, Store

NEW, SHORT = 2, 0.15
"""Runs on this machine that are not older than NEW seconds get SHORT seconds to end before the first refresh."""


def wait(
    names: Sequence[str],
    *,
    filters: Sequence[str] = (),
    timeout: float | None = None,
    on_refresh: Callable[[list[Entry], list[str]], None] = lambda _entries, _warnings: None,
) -> Result[list[Entry]]:
    """Wait for runs and tasks of sweeps. The exit code is 0 if all completed, 4 after a timeout, else 1."""
    with folders.store() as store:
        entries, warnings = meant(store, names, filters)
        ended = until_ended(store, [entry.run.id for entry in entries], timeout=timeout, on_refresh=on_refresh)
    if not all(entry.status.final for entry in ended):
        code = 4
    else:
        code = 0 if all(entry.status.state == "completed" for entry in ended) else 1
    return Result(kind="runs-finished", data=ended, warnings=warnings, exit_code=code)


def until_ended(
    store: Store,
    runs: Sequence[str],
    *,
    timeout: float | None = None,
    on_refresh: Callable[[list[Entry], list[str]], None] = lambda _entries, _warnings: None,
) -> list[Entry]:
    """Refresh, less and less often, until all runs have finished or `timeout` seconds have passed. Returns the runs.

    The end of a run on this machine is noticed within half a second; see `next_pause` for other machines.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    pause = clocks().first_refresh
    entries = store.several(runs)
    longest = longest_pause(sorted({entry.run.context for entry in entries}))

    def refresh(contexts: Sequence[str], unfinished: Sequence[Entry]) -> list[Entry]:
        uploads = _upload_time(unfinished, deadline)
        names = [entry.run.id for entry in unfinished]
        with ending_by(deadline):
            refreshed = checked(store, names, lambda: refresh_contexts(store, contexts, steps=STEPS, uploads=uploads))
        entries = store.several(runs)
        on_refresh(entries, refreshed.warnings)
        return [entry for entry in entries if not entry.status.final]

    unfinished = [entry for entry in entries if not entry.status.final]
    while unfinished:
        ends = LocalEnds(unfinished)  # before the refresh, so that no end after it is missed
        if ends.all_alive and time.time() - min(entry.run.created for entry in unfinished) < NEW:
            ends.sleep(SHORT if deadline is None else min(SHORT, deadline - time.monotonic()))
        unfinished = refresh(sorted({entry.run.context for entry in unfinished}), unfinished)
        left = longest if deadline is None else deadline - time.monotonic()
        if left <= 0:
            break
        until = time.monotonic() + min(pause, max(0.05, left))
        while unfinished and ends.sleep(until - time.monotonic()):
            unfinished = refresh(ends.contexts, unfinished)  # the other sites are queried after the pause
        if unfinished:
            age = time.time() - min(entry.run.created for entry in unfinished)
            pause = next_pause(pause, age, longest)
    return store.several(runs)


def _upload_time(runs: Sequence[Entry], deadline: float | None) -> float | None:
    """Return for how long a refresh may upload large code: without a limit if there is nothing else to wait for."""
    saved = all(entry.status.state in ("waiting", "submitting") for entry in runs)
    left = None if deadline is None else max(1.0, deadline - time.monotonic())
    if saved:
        return left
    return clocks().silent if left is None else min(left, clocks().silent)


EXAMPLES = [
    "yurt wait -",
    "yurt wait x7q4z 8m2kd --timeout 10m && echo completed",
    "yurt wait @last-sweep --filter lr=0.1",
]


@verb(examples=EXAMPLES, context_help="")
@argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=run_names)
@option("--timeout", metavar="TIME", type=Duration("10m"), help="Stop waiting after this time: 90s, 10m, 2h.")
@FILTER
def wait_command(runs: tuple[str, ...], timeout: float | None, filters: tuple[str, ...]) -> int:
    """Wait until runs have finished.

    The exit code is 0 if all runs completed, 1 if any did not, and 4 if --timeout expired. --filter selects tasks of
    sweeps once, at the start.
    """
    return wait_for(runs, kind="runs-finished", filters=filters, timeout=timeout)


ROUTINE = (
    "",
    "just submitted",
    "other jobs have higher priority",
    "waiting for free nodes",
    "waiting for another job to finish",
    "waiting for an earlier run to finish",
    "waiting: other runs use all slots of this machine",
)
"""Reasons of pending runs that every queue has; `wait` does not print them."""


def _blocked(entries: Sequence[Any]) -> list[str]:
    """Return a line for each reason why pending runs do not start, such as nodes that are down."""
    found: dict[tuple[str, str], list[str]] = {}
    for entry in entries:
        status = entry.status
        if status.state in ("queued", "held", "requeued") and status.reason not in ROUTINE:
            found.setdefault((status.state, status.reason), []).append(entry.run.id)
    return [
        f"{runs[0] if len(runs) == 1 else f'{len(runs)} runs'} {render.with_reason(state, reason)}"
        for (state, reason), runs in found.items()
    ]


def _end_line(run: Any, status: Any) -> str:
    """Return how a run ended; for a sweep that failed, how many tasks did, and their most frequent reason."""

    took = f" after {render.span(status.ended - status.started)}" if status.ended and status.started else ""
    reason = render.new_reason(status.state, status.why)
    if run.tasks and status.state == "failed" and status.task_states:
        reason = ": ".join(each for each in (tally.words(status.task_states), reason) if each)
    return f"{run.id} {render.with_reason(f'{status.state}{took}', reason)}"


def wait_for(runs: Sequence[str], *, kind: str, filters: Sequence[str] = (), timeout: float | None = None) -> int:
    """Wait for runs, print their final states and return the exit code."""
    from yurt.cli.progress import watching
    from yurt.cli.run_facts import memory_hint

    call.enable_gc()
    now = call.current()
    printed: set[str] = set()
    with watching() as watch:

        def on_refresh(entries: list[Any], warnings: list[str]) -> None:
            done = sum(entry.status.final for entry in entries)
            states = ", ".join(sorted({entry.status.state for entry in entries if not entry.status.final}))
            text = f"{len(entries) - done} unfinished ({states})" if states else "all finished"
            watch(Event(text, done, len(entries)))
            for line in (*warnings, *_blocked(entries)):
                same = re.sub(r"\d+", "0", line)  # "did not respond at 12:00:05" is no news at 12:01:05
                if same not in printed and not now.json and not now.quiet:
                    print(f"yurt: {render.escaped(line)}; still waiting", file=sys.stderr)
                printed.add(same)

        done = wait(runs, filters=filters, timeout=timeout, on_refresh=on_refresh)
    entries = done.data

    def print_text() -> None:
        for name, places in folded([entry.run.id for entry in entries]).items():
            if len(places) > 1:
                tasks = [entries[at].status for at in places]
                reason = main_reason((task.state, task.why) for task in tasks)
                why = f": {render.escaped(reason)}" if reason else ""
                print(f"{name}: {len(places)} tasks, {counted(task.state for task in tasks)}{why}", file=sys.stderr)
                continue
            run, status = entries[places[0]].run, entries[places[0]].status
            print(render.escaped(_end_line(run, status)), file=sys.stderr)
            if hint := memory_hint(run, status.state, status.task_states, status.usage):
                print(f"  hint: {hint}", file=sys.stderr)

    now.warnings += done.warnings
    render.show(kind, entries if kind != "run" else entries[0], print_text)
    return done.exit_code
