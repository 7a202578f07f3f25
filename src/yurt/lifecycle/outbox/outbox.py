"""Submits the outbox of a context: first cancellations, then runs, as far as the site accepts them.

Runs of one queue are submitted in the order of their creation. If the site is unreachable, they stay in the outbox.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from yurt.config import facts, paths
from yurt.errors import RefusedError, UnreachableError, UserError, YurtError
from yurt.lifecycle.advance import Advanced
from yurt.lifecycle.outbox import dependencies
from yurt.lifecycle.outbox.cancellations import tell_cancel
from yurt.lifecycle.outbox.submit import NO_CONNECTION, partly_submitted, submit
from yurt.model import ids
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.run import Plan, RunRef, State, Status
from yurt.store import Store

if TYPE_CHECKING:
    from yurt.backends.base import Backend


def send_waiting(
    store: Store, context: str, backend: Backend, watch: Watch = unwatched, *, fresh: str = ""
) -> Advanced:
    """Cancel runs on a site, then submit the runs in its outbox, in order, up to the site's submit limits.

    The index already records the run `fresh` as being submitted.
    """
    if not store.outbox(context) and not store.cancels(context):
        return Advanced()
    submitted: list[str] = []
    refused: dict[str, YurtError] = {}
    full: dict[tuple[str | None, ...], YurtError] = {}
    with _locked(context), _reset_untried(store, fresh, refused):
        try:
            for runs in _by_sweep(store.cancels(context)):
                with suppress(RefusedError):  # repeated the next time; must not block other runs
                    tell_cancel(store, runs, backend.runs)
            for run in store.outbox(context):
                plan = store.plan(run)
                if plan is None or _queue(plan) in full or (plan := _in_turn(store, plan)) is None:
                    continue
                try:
                    values = _secrets(plan)
                except UserError as error:  # must not block other runs
                    _note_missing_secret(store, run, error.message, fresh=run == fresh)
                    continue
                watch(Event(f"submitting {run} to {context}"))
                try:
                    submit(store, plan, backend.runs, values, noted=run == fresh)
                    submitted.append(run)
                except RefusedError as error:
                    at_limit, offline = error.code == "submit-limit", error.code in NO_CONNECTION and run != fresh
                    if at_limit:
                        full[_queue(plan)] = error
                    if not _keep_pending(store, run, error.message, waits=at_limit or offline):
                        refused[run] = error
                        facts.forget(context)
                        backend.runs.discard(RunRef(run, plan.run.folder, plan.run.created))
                        _set(store, run, state="failed", reason=error.message, ended=time.time())
                    if offline:
                        return Advanced(submitted, refused, error)
        except UnreachableError as error:
            return Advanced(submitted, refused, error)
    return Advanced(submitted, refused, next(iter(full.values()), None))


def _keep_pending(store: Store, run: str, why: str, *, waits: bool) -> bool:
    """Keep a rejected run pending, with the reason in its status, unless it can be given up; False if so."""
    if partly_submitted(store, run):  # submitted tasks go on; the rest stays pending
        store.change_tasks(run, whole=partial(_because, why))
    elif waits:
        _set_waiting(store, run, why)
    elif _tried_before(store, run):  # it may have been submitted then: only a refresh can tell
        _set_waiting(store, run, why, "unknown")
    else:
        return False
    return True


def _queue(plan: Plan) -> tuple[str | None, ...]:
    """Return what a site's submit limits depend on: if one queue is full, others may not be."""
    resources = plan.run.resources
    return resources.account, resources.partition, resources.qos


def _by_sweep(runs: Sequence[str]) -> list[list[str]]:
    """Group tasks by sweep; each run is a group of its own."""
    found: dict[str, list[str]] = {}
    for run in runs:
        found.setdefault(run.partition(".")[0] + ("." if "." in run else ""), []).append(run)
    return list(found.values())


def _in_turn(store: Store, plan: Plan) -> Plan | None:
    """Return the plan of a run that can be submitted now; None if it waits for its predecessors, or is cancelled."""
    found = dependencies.turn(store, plan.run)
    if partly_submitted(store, plan.run.id):  # the rest follows the same jobs; job.sh checks whether they completed
        return dependencies.behind(plan, found.jobs)
    if found.never:
        _set(store, plan.run.id, state="cancelled", reason=found.never, ended=time.time())
    elif found.later:
        _set(store, plan.run.id, state="waiting", reason=found.later, attempts=0)
    else:
        return dependencies.behind(plan, found.jobs)
    return None


def _set_waiting(store: Store, run: str, why: str, state: State = "waiting") -> None:
    """Keep a rejected run in the outbox. For a sweep, the rejected attempt does not count."""
    if not ids.is_sweep(run):
        _set(store, run, state=state, reason=why)
        return

    def whole(status: Status) -> Status:
        if status.final:
            return status
        return msgspec.structs.replace(status, state="waiting", reason=why, attempts=max(status.attempts - 1, 0))

    store.change_tasks(run, whole=whole)


def _because(why: str, status: Status) -> Status:
    return msgspec.structs.replace(status, reason=why)


def _tried_before(store: Store, run: str) -> bool:
    entry = store.get(run)
    return entry is not None and entry.status.attempts > 1


def _set(store: Store, run: str, **fields: Any) -> None:
    """Change fields of a status, unless the run has finished in the meantime."""

    def changed(status: Status) -> Status:
        return status if status.final else msgspec.structs.replace(status, **fields)

    if ids.is_sweep(run):
        store.change_tasks(run, whole=changed)
    else:
        store.change([run], lambda _run, status: changed(status))


@contextmanager
def _reset_untried(store: Store, fresh: str, refused: dict[str, YurtError]) -> Iterator[None]:
    """Reset the run `fresh` to waiting if it was recorded as being submitted, but no attempt was made."""
    yield
    entry = store.get(fresh) if fresh and fresh not in refused else None
    if entry is not None and entry.status.state == "submitting" and entry.status.attempts == 1:
        _set(store, fresh, state="waiting", attempts=0)


@contextmanager
def _locked(context: str) -> Iterator[None]:
    """Let one process at a time submit to a context. This keeps the order; the gate already prevents double starts."""
    folder = paths.data_home() / "outbox"
    paths.make_private(folder)
    descriptor = os.open(folder / f"{context}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _secrets(plan: Plan) -> dict[str, bytes]:
    """Read the current values of a run's secrets; yurt stores none. UserError if one is not found."""
    if not plan.run.secrets:
        return {}
    from yurt.config import secrets

    return secrets.values_of(plan.run.secrets)


def _note_missing_secret(store: Store, run: str, why: str, *, fresh: bool) -> None:
    """Keep a run pending until its secret is available. A refresh first checks whether it was submitted before."""
    if ids.is_sweep(run):
        if fresh:
            _set_waiting(store, run, why)
        elif partly_submitted(store, run):
            store.change_tasks(run, whole=partial(_because, why))
        else:
            _set(store, run, state="waiting", reason=why)
        return

    def how(_run: str, status: Status) -> Status:
        if status.final:
            return status
        checked = status.state == "waiting" and (status.attempts == 0 or status.seen_at is not None)
        if fresh or checked:
            return msgspec.structs.replace(
                status, state="waiting", reason=why, attempts=0 if fresh else status.attempts
            )
        return msgspec.structs.replace(status, state="unknown", reason=why)

    store.change([run], how)
