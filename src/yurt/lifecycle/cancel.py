"""cancel: cancel runs that are saved, queued or running."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext, suppress

import msgspec

from yurt.cli import render
from yurt.cli.completers import run_names
from yurt.cli.declare import argument, verb
from yurt.cli.filters import FILTER, counted, folded
from yurt.cli.progress import watching
from yurt.contexts import connect, folders
from yurt.errors import YurtError
from yurt.lifecycle.outbox.cancellations import request, tell_cancel
from yurt.lifecycle.refresh import notify
from yurt.lifecycle.select import meant
from yurt.model.progress import Watch, unwatched
from yurt.model.result import Result
from yurt.model.run import Status
from yurt.store import Entry, Store


class Cancelled(msgspec.Struct, frozen=True):
    """A run with a cancel request: its state, and whether its site has received the request."""

    id: str
    context: str
    state: str
    delivered: bool
    note: str = ""


def cancel(names: Sequence[str], *, filters: Sequence[str] = (), watch: Watch = unwatched) -> Result[list[Cancelled]]:
    """Cancel runs; with filters, the matching tasks of sweeps. The exit code is not 0 if a site was unreachable."""
    index = folders.store()
    entries, warnings = meant(index, names, filters, watch=watch)
    races = any(entry.run.race for entry in entries)
    done, unreachable = _cancel_races(index, entries) if races else cancel_runs(index, entries)
    code = 0 if unreachable is None else unreachable.exit_code
    return Result(kind="runs-cancelled", data=done, warnings=warnings, exit_code=code)


def _cancel_races(store: Store, entries: Sequence[Entry]) -> tuple[list[Cancelled], YurtError | None]:
    """Cancel runs, and races with all their candidates."""
    from yurt.lifecycle.races.view import in_queues, is_race

    done: list[Cancelled] = []
    unreachable: YurtError | None = None
    for entry in entries:
        if is_race(entry.run):
            queued = in_queues(store, entry)
            unsent = entry.status.state == "waiting" and not entry.status.attempts
            if not queued and (unsent or not store.candidates(entry.run.race)):  # it is being submitted, perhaps again
                request(store, [entry])
            found, failure = cancel_runs(store, queued)
            done.append(_as_one(store, entry, found))
        else:
            found, failure = cancel_runs(store, [entry])
            done += found
        unreachable = failure or unreachable
    return done, unreachable


def _as_one(store: Store, entry: Entry, found: Sequence[Cancelled]) -> Cancelled:
    """Return the outcome for a race from those of its candidates."""
    from yurt.lifecycle.races.tend import tend

    tend(store)
    after = store.get(entry.run.id) or entry
    failed = [each for each in found if not each.delivered]
    note = "; ".join(f"{each.context}: {each.note}" for each in failed)
    if not note and not after.status.final:
        note = "cancelled; its jobs are terminating"
    if not found and entry.status.final:
        note = "it had already finished"
    where = ", ".join(dict.fromkeys(each.context for each in found)) or entry.run.context
    return Cancelled(entry.run.id, where, after.status.state, not failed, note or after.status.reason)


def cancel_runs(store: Store, entries: Sequence[Entry]) -> tuple[list[Cancelled], YurtError | None]:
    """Cancel runs. A run that was never submitted is cancelled immediately.

    The request is saved first: if a site cannot be reached, the next advance() cancels its runs. Runs of one context,
    and tasks of one sweep, take one request to the site. Returns the outcome for each run, and the error of a site
    that could not be reached.
    """
    request(store, entries)
    found: dict[str, Cancelled] = {}
    unreachable = None
    by_context: dict[str, list[Entry]] = {}
    for entry in entries:
        by_context.setdefault(entry.run.context, []).append(entry)
    for context, group in by_context.items():
        names = [entry.run.id for entry in group]
        alive = [entry.run.id for entry in store.several(names) if not entry.status.final]
        failure: YurtError | None = None
        ended: list[str] = []
        if alive:
            try:
                ended = tell_cancel(store, alive, connect.responding_backend(context, alone=len(by_context) == 1).runs)
            except YurtError as error:
                failure = unreachable = error
        if ended:
            _update(store, context)
        after = {entry.run.id: entry.status for entry in store.several(names)}
        for entry in group:
            run = entry.run.id
            left = run in alive and run in after and after[run].cancel_requested and not after[run].final
            found[run] = _outcome(entry, after.get(run), failure if left else None, had_ended=run in ended)
    notify.fire(store)
    return [found[entry.run.id] for entry in entries], unreachable


def _update(store: Store, context: str) -> None:
    """Update the index: runs of the context had ended before they were cancelled. An error is left to the next one."""
    from yurt.lifecycle.refresh.refresh import refresh_contexts

    with suppress(YurtError):
        refresh_contexts(store, [context], keep=False)


def _outcome(entry: Entry, after: Status | None, failure: YurtError | None, *, had_ended: bool) -> Cancelled:
    run, state = entry.run, after.state if after is not None else "unknown"
    if failure is not None:
        return Cancelled(run.id, run.context, state, False, failure.message)
    note = after.reason if after else ""
    if entry.status.final or (had_ended and after is not None and after.final):
        note = "it had already finished"
    return Cancelled(run.id, run.context, state, True, note)


@verb(examples=["yurt cancel -", "yurt cancel x7q4z 8m2kd", "yurt cancel @last-sweep --filter lr=0.1"], context_help="")
@argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=run_names)
@FILTER
def cancel_command(runs: tuple[str, ...], filters: tuple[str, ...]) -> int:
    """Cancel runs.

    Cancels runs that are running, queued, or saved and not yet submitted. --filter selects tasks of sweeps and
    cancels them in one request. If the site is unreachable, the request is saved, and the next yurt command that
    reaches the site cancels the runs.
    """

    with watching() if filters else nullcontext(unwatched) as watch:
        found = cancel(runs, filters=filters, watch=watch)

    return render.result(found, lambda: print_cancelled(found.data))


def print_cancelled(done: Sequence[Cancelled]) -> None:
    """Print the outcome for each run; one line for the tasks of a sweep."""
    for name, places in folded([each.id for each in done]).items():
        each = done[places[0]]
        if len(places) > 1:
            late = "" if each.delivered else f"; {_late(each, 'them')}"
            print(f"{name}: {len(places)} tasks, {counted(done[at].state for at in places)}{late}")
        elif not each.delivered:
            print(f"{each.id}: {_late(each, 'it')}")
        else:
            print(f"{each.id} {render.with_reason(each.state, render.escaped(each.note))}")


def _late(each: Cancelled, what: str) -> str:
    note = render.escaped(each.note)
    return f"not cancelled yet ({note}); the next yurt command that reaches {each.context} will cancel {what}"
