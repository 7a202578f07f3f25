"""advance(): whatever waits on this machine moves on, as far as a site allows. Any verb may call it.

Order on one context is the order of asking. What fails for want of the site stays where it is.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from yurt import snapshot
from yurt.backends.base import Backend, CodeParcel, Placed
from yurt.config import facts, paths
from yurt.errors import RefusedError, UnreachableError, YurtError
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.run import Plan, Spot, Status
from yurt.model.state import CANCELLED
from yurt.snapshot import send
from yurt.store import Store


class Advanced(msgspec.Struct, frozen=True):
    """What moved: runs that went out, runs that were refused, and what stopped the rest."""

    submitted: list[str] = []
    refused: dict[str, YurtError] = {}
    stopped: YurtError | None = None


def advance(store: Store, context: str, backend: Backend, *, watch: Watch = unwatched) -> Advanced:
    """Tell a site which runs are cancelled, then submit all that wait for it, in order."""
    if not store.outbox(context) and not store.cancels(context):
        return Advanced()
    submitted: list[str] = []
    refused: dict[str, YurtError] = {}
    with _alone(context):
        try:
            for spot in store.cancels(context):
                tell_cancel(store, spot.id, backend)
            for run in store.outbox(context):
                plan = store.plan(run)
                if plan is None:
                    continue
                watch(Event(f"submitting {run} to {context}"))
                try:
                    _submit(store, plan, backend)
                    submitted.append(run)
                except RefusedError as error:
                    if error.code == "submit-limit":
                        _set(store, run, state="waiting", reason=error.message)
                        return Advanced(submitted, refused, error)
                    refused[run] = error
                    facts.forget(context)
                    _set(store, run, state="failed", reason=error.message, ended=time.time())
        except UnreachableError as error:
            return Advanced(submitted, refused, error)
    return Advanced(submitted, refused)


def _set(store: Store, run: str, **fields: Any) -> None:
    """Change fields of a status, unless the run has ended meanwhile."""
    store.change([run], lambda _run, status: status if status.final else msgspec.structs.replace(status, **fields))


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


def tell_cancel(store: Store, run: str, backend: Backend) -> str:
    """Have a site end a run, or keep it from ever starting. Returns what stands in its gate."""
    entry = store.get(run)
    if entry is None or entry.status.final:
        return ""
    winner = backend.cancel(Spot(run, entry.run.folder, entry.run.created))

    def told(_run: str, status: Status) -> Status:
        if winner == CANCELLED and not status.final:
            return msgspec.structs.replace(
                status, state="cancelled", reason="cancelled before it started", ended=time.time(), cancel=False
            )
        state = "unknown" if status.state in ("waiting", "submitting") else status.state
        return msgspec.structs.replace(status, state=state, reason="cancelled; it is ending", cancel=False)

    store.change([run], told)
    return winner


def _submit(store: Store, plan: Plan, backend: Backend) -> None:
    """Submit one run. Whatever happens, the index says that it may have gone out before anything goes out."""
    run, context, project = plan.run.id, plan.run.context, plan.run.project
    if run not in store.change([run], lambda _run, status: _submitting(status)):
        return  # cancelled meanwhile
    nonce = os.urandom(4).hex()
    known = store.code_at(context, project)
    try:
        placed = _place(plan, backend, nonce, [known] if known else [], hope=known in ("", plan.run.code.tree))
    except UnreachableError as error:
        _set(store, run, state="waiting", reason=error.message)
        raise
    if plan.run.code.tree and plan.run.code.tree != known:
        store.note_code(context, project, plan.run.code.tree)
    store.change([run], lambda _run, status: _placed(status, placed))


def _submitting(status: Status) -> Status:
    if status.final:
        return status
    return msgspec.structs.replace(status, state="submitting", attempts=status.attempts + 1)


def _placed(status: Status, placed: Placed) -> Status:
    if status.final:
        return status
    if placed.winner == CANCELLED:
        return msgspec.structs.replace(
            status, state="cancelled", reason="cancelled before it started", ended=time.time()
        )
    return msgspec.structs.replace(
        status,
        state="queued",
        reason="it was submitted just now",
        job=placed.job,
        submitted=status.submitted or time.time(),
        rooted=False,
        missing_since=None,
    )


def _place(plan: Plan, backend: Backend, nonce: str, known: Sequence[str], *, hope: bool) -> Placed:
    """Submit, with the code if the site has not got it: one trip if what it has was known, else two."""
    receiver = send.receiver() if plan.run.code.tree else ""
    code = CodeParcel(receiver=receiver) if hope or not plan.run.code.tree else _parcel(plan, known)
    for _try in range(4):
        placed = backend.submit(plan, nonce, code)
        if placed.base_missing:
            code = _parcel(plan, [])
        elif placed.needs is not None:
            code = _parcel(plan, placed.needs)
        else:
            return placed
    raise UnreachableError(
        f"{backend.host.name}: the code did not arrive", code="answer-lost", hint="repeat the command: it is safe to"
    )


def _parcel(plan: Plan, known: Sequence[str]) -> CodeParcel:
    taken = snapshot.Snapshot(plan.run.code.tree, plan.run.code.files, plan.run.code.size, Path(plan.store))
    code = send.code_for(taken, known)
    return CodeParcel(receiver=send.receiver(), kind=code.kind, base=code.base, content=code.content)
