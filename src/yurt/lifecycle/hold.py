"""hold and release: keep queued runs from starting, and let them start."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from yurt.backends.kinds import kind_of
from yurt.cli import render
from yurt.cli.completers import run_names
from yurt.cli.declare import argument, verb
from yurt.contexts import connect, folders
from yurt.envs.of_runs.tend import let_go
from yurt.errors import UserError
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.select import which
from yurt.model import layout
from yurt.model.result import Result
from yurt.store import Entry, Store

if TYPE_CHECKING:
    from yurt.model.result import Result


QUEUED = ("queued", "held", "requeued")
"""States of a run that can be held and released."""


class Held(msgspec.Struct, frozen=True):
    """A run, and its state after the request."""

    id: str
    context: str
    state: str


def hold(names: Sequence[str]) -> Result[list[Held]]:
    """Hold queued runs and sweeps: they do not start until they are released. UserError if one is not in a queue."""
    data, warnings = _tell(names, "hold")
    return Result(kind="runs-held", data=data, warnings=warnings)


def release(names: Sequence[str]) -> Result[list[Held]]:
    """Release runs and sweeps that were held, also by `run --hold` or by `scontrol hold`."""
    data, warnings = _tell(names, "release")
    return Result(kind="runs-released", data=data, warnings=warnings)


def _tell(names: Sequence[str], what: str) -> tuple[list[Held], list[str]]:
    """Send a request to the sites of runs; return the runs, and warnings."""
    index = folders.store()
    named = which(index, names)
    runs = [each.run.id for entry in named for each in _in_queues(index, entry, what)]
    warnings = _refresh(index, runs)
    by_context: dict[str, list[str]] = {}
    for entry in index.several(runs):
        by_context.setdefault(entry.run.context, []).extend(_jobs(index, entry))
        if entry.run.home_sync:  # from now on the user decides when it starts
            connect.named_backend(entry.run.context).runs.forget_sync(_jobs(index, entry))
        if what == "hold":
            index.note_held(entry.run.context, [entry.run.id], time.time())
            let_go(index, connect.named_backend(entry.run.context), entry)
    for context, jobs in by_context.items():
        site = connect.named_backend(context).runs
        (site.hold if what == "hold" else site.release)(jobs)
    warnings += _refresh(index, runs)
    found: dict[str, Held] = {}
    for entry in index.several(runs):
        run, state = entry.run.race or entry.run.id, _state(entry)
        if run in found:  # a race is one run
            where = dict.fromkeys([*found[run].context.split(", "), entry.run.context])
            states = dict.fromkeys([*found[run].state.split(", "), state])
            found[run] = Held(run, ", ".join(where), ", ".join(states))
        else:
            found[run] = Held(run, entry.run.context, state)
    return list(found.values()), list(dict.fromkeys(warnings))  # a site that does not respond was queried twice


def _in_queues(index: Store, entry: Entry, what: str) -> list[Entry]:
    """Return what is in the queues for a run: of a race, its candidates; to release them, those in a queue."""
    if not entry.run.race:
        return [entry]
    from yurt.lifecycle.races.view import in_queues, is_race

    found = in_queues(index, entry) if is_race(entry.run) and entry.run.task is None else [entry]
    if what == "release":
        found = [each for each in found if each.run.tasks or each.status.state in QUEUED]
    return [each for each in found if kind_of(each.run.context_type).scheduler] or [entry]


def _state(entry: Entry) -> str:
    """Return the state; of a sweep, that of its pending tasks if they are held, though other tasks may be running."""
    return "held" if entry.status.held else entry.status.state


def _refresh(index: Store, runs: Sequence[str]) -> list[str]:
    return refresh_contexts(index, sorted({entry.run.context for entry in index.several(runs)})).warnings


def _jobs(index: Store, entry: Entry) -> list[str]:
    """Return the jobs of a run for the scheduler."""
    run, status = entry.run, entry.status
    if not kind_of(run.context_type).scheduler:
        raise UserError(f"run {run.id} is on this machine, which has no queue", code="usage", hint="see `yurt ps`")
    if run.task is not None:
        raise UserError(
            f"{run.id} is a task; only a whole sweep can be held", code="usage", hint=f"name the sweep: `{run.sweep}`"
        )
    if status.state in ("waiting", "submitting"):
        raise UserError(
            f"run {run.id} is not submitted yet: {status.reason or status.state}",
            code="usage",
            hint=f"see `yurt show {run.id}`",
        )
    if status.final or (status.state not in QUEUED and not run.tasks):
        raise UserError(
            f"run {run.id} is not in the queue: it is {status.state}", code="usage", hint=f"see `yurt show {run.id}`"
        )
    names = [f"{run.id}+{offset}" for offset in status.offsets] if run.tasks else [run.id]
    alone = set[str]()
    if run.race and run.tasks:  # the jobs of single tasks that gave their node back
        held = [each for each in index.tasks(run.id).values() if each.state == "held"]
        alone = {each.job.partition("_")[0] for each in held} - {"", *status.job.split(",")}
    return [*(f"jobname={layout.job_name(name)}" for name in names), *sorted(alone)]


@verb(examples=["yurt hold -", "yurt hold x7q4z @last-sweep"], context_help="")
@argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=run_names)
def hold_command(runs: tuple[str, ...]) -> int:
    """Keep queued runs from starting.

    The jobs stay in Slurm's queue until `yurt release`. The tasks of a sweep that are running continue.
    """

    return _printed(hold(runs))


@verb(examples=["yurt release -", "yurt release x7q4z 8m2kd"], context_help="")
@argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=run_names)
def release_command(runs: tuple[str, ...]) -> int:
    """Let held runs start.

    Releases runs that `yurt hold`, `yurt run --hold` or `scontrol hold` holds. A hold of an administrator stays.
    """

    return _printed(release(runs))


def _printed(found: Result[list[Held]]) -> int:
    def print_text() -> None:
        for each in found.data:
            print(f"{each.id} {each.state}")

    return render.result(found, print_text)
