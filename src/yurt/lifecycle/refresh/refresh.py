"""Queries sites and updates the index: one query per context, contexts in parallel."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from yurt.clocks import clocks
from yurt.contexts import bad_nodes, connect, early_answer
from yurt.contexts.advance import Advanced, Step, advance, both
from yurt.errors import YurtError
from yurt.lifecycle.outbox.pending import send_pending
from yurt.lifecycle.refresh import archive, notify, other_machines, track
from yurt.model import ids
from yurt.model.progress import Watch, unwatched
from yurt.model.run import Run, RunRef, Status
from yurt.model.stage import with_lost_outputs
from yurt.model.state import NEVER, Observation, confirmed_at, mark_of, next_status
from yurt.model.status_answer import RunFiles
from yurt.model.tally import BAD
from yurt.store import Store, calls
from yurt.store.tasks import with_held

if TYPE_CHECKING:
    from yurt.backends.base import Backend


class Refreshed(msgspec.Struct, frozen=True):
    """Result of a refresh: contexts that could not be queried, with the error, and runs submitted on the way."""

    failed: dict[str, YurtError] = {}
    advanced: dict[str, Advanced] = {}
    seen: dict[str, Observation] = {}
    """Observations of runs whose status may have changed."""
    known_at: dict[str, float | None] = {}
    """When the contexts that could not be queried were last refreshed; 0: before a run was submitted there."""
    notes: list[str] = []
    """Warnings about races and about runs that are not tracked."""
    files: RunFiles | None = None
    """What was read in the folder of the running run that the caller named."""

    @property
    def warnings(self) -> list[str]:
        warnings = [_failure(context, error, self.known_at.get(context)) for context, error in self.failed.items()]
        for context, each in self.advanced.items():
            if each.stopped is not None and context not in self.failed:
                why = each.stopped.message.removeprefix(f"{context}: ")
                warnings.append(f"runs on {context} are saved and not yet submitted: {why}")
            warnings += [f"run {run} was rejected: {error.message}" for run, error in each.refused.items()]
            warnings += [f"run {run}: {note}" for run, note in each.notes.items()]
        return [*warnings, *self.notes]


def _failure(context: str, error: YurtError, known_at: float | None) -> str:
    """Return the warning about a context that could not be queried."""
    at = f"state of {time.strftime('%H:%M:%S', time.localtime(known_at))}" if known_at else "last known states"
    state = "" if known_at is None else f"; showing the {at}"
    if error.code != "not-responding":
        return f"cannot query {context}: {error.message.removeprefix(f'{context}: ')}{state}"
    return f"{error.message}{state} (`yurt login {context}` tries again now)"


def refresh_contexts(
    store: Store,
    contexts: Sequence[str] | None = None,
    *,
    also: Sequence[str] = (),
    ended: Sequence[str] = (),
    keep: bool = True,
    steps: Sequence[Step] = (send_pending,),
    uploads: float | None = -1.0,
    watch: Watch = unwatched,
    verb: str = "ps",
    running: str = "",
) -> Refreshed:
    """Run `steps` and refresh contexts (default: all with unfinished runs). `also` are finished runs to query as well;
    `ended` are those whose exit code is known: only their jobs in the queue are observed.

    Contexts of the predecessors of pending runs, and of rivals in a race, are refreshed too.

    Without `keep`, logs and metrics of finished runs are saved by a later refresh. `uploads`: for how many seconds to
    upload large code of saved runs, by default a few; None: until all is uploaded. `verb`: the verb that will make the
    same query again. `running`: the folder of a run whose last metrics and usage are wanted, too.
    """
    calls.collect(store)
    uploads = clocks().share if uploads is not None and uploads < 0 else uploads
    names = with_predecessors(store, contexts) if contexts is not None else store.contexts_of_unfinished()
    names += store.rivals(names) if names and store.open_races() else []
    failed: dict[str, YurtError] = {}
    advanced: dict[str, Advanced] = {}
    observed: dict[str, Observation] = {}
    known_at: dict[str, float | None] = {}
    saved: set[str] = set()
    files: list[RunFiles | None] = [None]
    verb, alone = verb if len(names) == 1 else "", len(names) == 1

    def one(index: Store, name: str) -> None:
        try:
            moved, files[0] = _refresh(
                index,
                name,
                (also, ended),
                observed,
                saved,
                verb=verb,
                steps=steps,
                keep=keep,
                watch=watch,
                running=running,
                alone=alone,
            )
            advanced[name] = _upload(index, name, moved, uploads, watch) if moved.large else moved
        except YurtError as error:
            at = index.refreshed_at(name)
            known = index.several([ref.id for ref in index.refs(name)])
            newer = at is not None and any((each.status.submitted or each.run.created) > at for each in known)
            failed[name], known_at[name] = error, 0.0 if newer else at

    def in_a_thread(name: str) -> None:
        with store.twin() as index:
            one(index, name)

    if len(names) == 1:
        one(store, names[0])
    elif names:
        from yurt.contexts.fan_out import side_by_side

        side_by_side(in_a_thread, names)
    if saved:
        _record_causes(store, saved)
    notes = _tend_races(store) if store.open_races() else []
    notify.fire(store)
    notes += track.begin(store)
    return Refreshed(failed, advanced, observed, known_at, notes, files[0])


def _record_causes(store: Store, saved: Collection[str]) -> None:
    """Record why runs failed whose logs were just saved."""
    failed = [entry for entry in store.several(list(saved)) if entry.status.state in BAD]
    if failed:
        from yurt.lifecycle.refresh import causes

        causes.record(store, failed)


def _tend_races(store: Store) -> list[str]:
    from yurt.lifecycle.races.tend import tend

    return tend(store)


def with_predecessors(store: Store, contexts: Sequence[str]) -> list[str]:
    """Add the contexts of unfinished predecessors of pending runs: these are only submitted after a refresh there."""
    names = list(contexts)
    for name in names:  # grows during the loop: a predecessor may have its own predecessors
        for waiting in store.several(store.outbox(name)):
            followed = store.several([after.run for after in waiting.run.after])
            names += {each.run.context for each in followed if not each.status.final} - set(names)
    return names


def _upload(store: Store, context: str, moved: Advanced, seconds: float | None, watch: Watch) -> Advanced:
    """Upload large code of saved runs and submit them. The context is refreshed already: its states do not wait."""
    if seconds == 0:
        return moved
    from yurt.lifecycle.outbox.outbox import send_large

    sent = send_large(store, context, connect.named_backend(context), moved.large, watch, seconds=seconds)
    if sent.submitted:
        early_answer.states_changed()
    return both(moved, sent)


def _refresh(
    store: Store,
    context: str,
    finished: tuple[Sequence[str], Sequence[str]],
    observed: dict[str, Observation],
    saved: set[str],
    *,
    verb: str,
    steps: Sequence[Step],
    keep: bool,
    watch: Watch,
    running: str,
    alone: bool,
) -> tuple[Advanced, RunFiles | None]:
    # A saved cancellation is sent as soon as the site responds, by loops and by commands about several sites, too.
    urgent = bool(store.cancels(context))
    backend = connect.responding_backend(context, scheduler=True, alone=alone, urgent=urgent)
    moved = advance(store, context, backend, steps, watch=watch)
    if moved.stopped is not None and moved.stopped.exit_code == 4:
        raise moved.stopped
    if moved.submitted:
        early_answer.states_changed()
    other_machines.refresh(store, context, backend.files)
    refs = store.refs(context, *finished)
    if not refs:
        if keep:
            saved |= archive.catch_up(store, context, backend.files, watch=watch)
        return moved, None
    now, refreshed = time.time(), store.refreshed_at(context)
    early_answer.expect(verb or "ps", early_answer.basis_of_status(context, refs, running) if verb else b"")
    answer = backend.runs.observe(refs, store.answer(context), running)
    seen = answer.runs
    observed.update(seen)
    sweeps, tasks = _next_task_statuses(store, seen, now, refreshed)
    sweeps |= _hold(store, refs, answer.held)
    _note_settled(store, refs, seen, tasks | sweeps)
    ended = {ref.id for ref in refs if ref.ended}
    runs = {run: observation for run, observation in seen.items() if "." not in run and run not in ended}
    how = _status_changer(store, runs, now, refreshed)
    changed = {} if not runs else store.change(runs, how, lambda run, after: mark_of(after, runs[run]))
    bad_nodes.note(store, context, seen, changed | tasks)
    changed |= sweeps
    bad_nodes.release_held(store, backend.runs, seen)
    store.note_refresh(context, now, answer.answer)
    _drop_shares(store, backend, changed)
    if keep:
        saved |= archive.catch_up(store, context, backend.files, watch=watch)
    if any(status.final or status.state == "waiting" for status in changed.values()):
        early_answer.states_changed()
    # Submit again runs whose job the site lost, and submit runs whose predecessor has finished.
    if any(status.state == "waiting" or status.final for status in changed.values()) and store.outbox(context):
        return both(moved, advance(store, context, backend, steps, watch=watch)), answer.files
    return moved, answer.files


def _note_settled(
    store: Store, refs: Sequence[RunRef], seen: Mapping[str, Observation], changed: Collection[str]
) -> None:
    """Mark the sweeps about which the same answer would never change anything, not even with time."""
    moved = {run.partition(".")[0] for run in changed}
    found: dict[str, dict[int, Observation]] = {}
    for run, observation in seen.items():
        if task := ids.split_task(run):
            found.setdefault(task[0], {})[task[1]] = observation
    for ref in refs:
        if not ref.open:
            continue
        until = None if ref.id in moved else _settled_until(store.tasks(ref.id), found.get(ref.id, {}))
        if (until is not None) != bool(ref.mark):
            store.mark_sweep(ref.id, until)


def _settled_until(known: Mapping[int, Status], seen: Mapping[int, Observation]) -> float | None:
    """Return until when the same observations of tasks change nothing; 0: for ever; None if they may at any time."""
    until = 0.0
    for number, observation in seen.items():
        status = known.get(number)
        if status is None or observation.live is None or observation.unlaunched:
            return None
        if not status.confirmed:
            until = min(until or confirmed_at(status), confirmed_at(status))
    return until


def _next_task_statuses(
    store: Store, seen: dict[str, Observation], now: float, refreshed: float | None
) -> tuple[dict[str, Status], dict[str, Status]]:
    """Update the statuses of tasks after a query. Return the sweeps and the tasks that changed."""
    found: dict[str, dict[int, Observation]] = {}
    for run, observation in seen.items():
        if task := ids.split_task(run):
            found.setdefault(task[0], {})[task[1]] = observation
    changed: dict[str, Status] = {}
    tasks: dict[str, Status] = {}
    for sweep, observations in found.items():
        entry = store.get(sweep)
        if entry is None:
            continue

        def how(
            number: int, status: Status, seen: dict[int, Observation] = observations, run: Run = entry.run
        ) -> Status:
            if status.state == "waiting":
                return status
            after = next_status(status, seen[number], now, run.restart_policy, refreshed)
            return with_lost_outputs(run, status, after) if run.stage is not None else after

        each, after = store.change_tasks(sweep, observations, how)
        tasks |= {ids.task(sweep, number): status for number, status in each.items()}
        if after != entry.status:
            changed[sweep] = after
    return changed, tasks


def _hold(store: Store, refs: Sequence[RunRef], held: Mapping[str, str]) -> dict[str, Status]:
    """Record of which sweeps all pending tasks are held, and why. Return the sweeps that changed."""
    changed = {}
    for ref in refs:
        why = held.get(ref.id, "")
        if ref.open and why != ref.held:
            changed[ref.id] = store.change_tasks(
                ref.id,
                whole=lambda status, why=why: with_held(status, "" if status.building else why),  # type: ignore[misc]
            )[1]
    return changed


def _drop_shares(store: Store, backend: Backend, changed: dict[str, Status]) -> None:
    """Remove the remaining secret shares of runs that finished without removing them: they do not start again.

    Lost runs with a restart policy are skipped: they may still be running, and start themselves again.
    """
    entries = [store.get(run) for run, status in changed.items() if status.final]
    ended = [entry for entry in entries if entry is not None and entry.run.secrets]
    folders = [each.run.folder for each in ended if each.status.state != "lost" or not each.run.restart_policy]
    if folders:
        backend.runs.drop_shares(folders)


def _status_changer(
    store: Store, seen: dict[str, Observation], now: float, refreshed: float | None
) -> Callable[[str, Status], Status]:
    def how(run: str, status: Status) -> Status:
        if status.state in ("waiting", "submitting"):
            return status
        observation = seen[run]
        entry = store.get(run) if observation.live is None and observation.ending is None else None
        policy = entry.run.restart_policy if entry is not None else NEVER
        after = next_status(status, observation, now, policy, refreshed)
        return with_lost_outputs(entry.run, status, after) if entry is not None else after

    return how
