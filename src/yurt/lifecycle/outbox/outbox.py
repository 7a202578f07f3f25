"""Sends what waits for a context: cancellations, then runs, as far as the context allows.

Order in one queue of a context is the order of asking. What fails for want of the site stays where it is.
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
from yurt.lifecycle.outbox.submit import NO_CONNECTION, partly_out, submit
from yurt.model import ids
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.run import Plan, RunRef, State, Status
from yurt.store import Store

if TYPE_CHECKING:
    from yurt.backends.base import Backend


def send_waiting(
    store: Store, context: str, backend: Backend, watch: Watch = unwatched, *, fresh: str = ""
) -> Advanced:
    """Tell a site which runs are cancelled, then submit all that wait for it, in order, as far as there is room.

    The index says already of the run `fresh` that it may have gone out.
    """
    if not store.outbox(context) and not store.cancels(context):
        return Advanced()
    submitted: list[str] = []
    refused: dict[str, YurtError] = {}
    full: dict[tuple[str | None, ...], YurtError] = {}
    with _alone(context), _untried(store, fresh, refused):
        try:
            for runs in _together(store.cancels(context)):
                with suppress(RefusedError):  # it is told again the next time, and holds up nobody
                    tell_cancel(store, runs, backend.runs)
            for run in store.outbox(context):
                plan = store.plan(run)
                if plan is None or _queue(plan) in full or (plan := _in_turn(store, plan)) is None:
                    continue
                try:
                    values = _secrets(plan)
                except UserError as error:  # others need not wait for it
                    _without_secret(store, run, error.message, fresh=run == fresh)
                    continue
                watch(Event(f"submitting {run} to {context}"))
                try:
                    submit(store, plan, backend.runs, values, noted=run == fresh)
                    submitted.append(run)
                except RefusedError as error:
                    no_room, no_way = error.code == "submit-limit", error.code in NO_CONNECTION and run != fresh
                    if no_room:
                        full[_queue(plan)] = error
                    if not _kept(store, run, error.message, waits=no_room or no_way):
                        refused[run] = error
                        facts.forget(context)
                        backend.runs.discard(RunRef(run, plan.run.folder, plan.run.created))
                        _set(store, run, state="failed", reason=error.message, ended=time.time())
                    if no_way:
                        return Advanced(submitted, refused, error)
        except UnreachableError as error:
            return Advanced(submitted, refused, error)
    return Advanced(submitted, refused, next(iter(full.values()), None))


def _kept(store: Store, run: str, why: str, *, waits: bool) -> bool:
    """Whether something is left to do for a run that was refused; then its status says why it has to wait."""
    if partly_out(store, run):  # what has gone out of a sweep goes on; the rest waits
        store.change_tasks(run, whole=partial(_because, why))
    elif waits:
        _stays(store, run, why)
    elif _tried_before(store, run):  # and may have gone out then: only a look can tell
        _stays(store, run, why, "unknown")
    else:
        return False
    return True


def _queue(plan: Plan) -> tuple[str | None, ...]:
    """What a site's limits on how many jobs one may submit go by: where one is reached, others may have room."""
    asked = plan.run.resources
    return asked.account, asked.partition, asked.qos


def _together(runs: Sequence[str]) -> list[list[str]]:
    """Runs each alone, tasks of one sweep together."""
    found: dict[str, list[str]] = {}
    for run in runs:
        found.setdefault(run.partition(".")[0] + ("." if "." in run else ""), []).append(run)
    return list(found.values())


def _in_turn(store: Store, plan: Plan) -> Plan | None:
    """The plan of a run that may go out now; None if it has to wait for others, or never will."""
    if partly_out(store, plan.run.id):  # its turn has come
        return plan
    found = dependencies.turn(store, plan.run)
    if found.never:
        _set(store, plan.run.id, state="cancelled", reason=found.never, ended=time.time())
    elif found.later:
        _set(store, plan.run.id, state="waiting", reason=found.later, attempts=0)
    else:
        return dependencies.behind(plan, found.jobs)
    return None


def _stays(store: Store, run: str, why: str, state: State = "waiting") -> None:
    """It is kept though it was refused. A sweep waits, and that was no try of it: what it tried before counts."""
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
    """Change fields of a status, unless the run has ended meanwhile."""

    def changed(status: Status) -> Status:
        return status if status.final else msgspec.structs.replace(status, **fields)

    if ids.is_sweep(run):
        store.change_tasks(run, whole=changed)
    else:
        store.change([run], lambda _run, status: changed(status))


@contextmanager
def _untried(store: Store, fresh: str, refused: dict[str, YurtError]) -> Iterator[None]:
    """A run of which the index said ahead that it may have gone out, and that was not reached, just waits."""
    yield
    entry = store.get(fresh) if fresh and fresh not in refused else None
    if entry is not None and entry.status.state == "submitting" and entry.status.attempts == 1:
        _set(store, fresh, state="waiting", attempts=0)


@contextmanager
def _alone(context: str) -> Iterator[None]:
    """One yurt at a time submits to a context: not for safety, which the gate gives, but for order."""
    folder = paths.data_home() / "outbox"
    paths.make_private(folder)
    descriptor = os.open(folder / f"{context}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _secrets(plan: Plan) -> dict[str, bytes]:
    """The values of a run's secrets, as they are now: none was kept. UserError where one is not to be found."""
    if not plan.run.secrets:
        return {}
    from yurt.config import secrets

    return secrets.values_of(plan.run.secrets)


def _without_secret(store: Store, run: str, why: str, *, fresh: bool) -> None:
    """Waits for a yurt that knows the secret; one that may have gone out before is first looked for at its site."""
    if ids.is_sweep(run):
        if fresh:
            _stays(store, run, why)
        elif partly_out(store, run):
            store.change_tasks(run, whole=partial(_because, why))
        else:
            _set(store, run, state="waiting", reason=why)
        return

    def how(_run: str, status: Status) -> Status:
        if status.final:
            return status
        looked_for = status.state == "waiting" and (status.attempts == 0 or status.seen_at is not None)
        if fresh or looked_for:
            return msgspec.structs.replace(
                status, state="waiting", reason=why, attempts=0 if fresh else status.attempts
            )
        return msgspec.structs.replace(status, state="unknown", reason=why)

    store.change([run], how)
