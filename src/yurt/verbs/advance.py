"""advance(): whatever waits on this machine moves on, as far as a site allows. Any verb may call it.

Order on one context is the order of asking. What fails for want of the site stays where it is.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from yurt.backends.base import Backend, CodeParcel, Placed
from yurt.config import contexts, facts, paths
from yurt.errors import RefusedError, UnreachableError, UserError, YurtError
from yurt.model import ids, sent
from yurt.model import tasks as numbering
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.run import Plan, Spot, State, Status
from yurt.model.state import CANCELLED
from yurt.store import Store
from yurt.verbs import bad_nodes, turn
from yurt.verbs.tell import sweep_told, tell_cancel

if TYPE_CHECKING:
    from yurt.model.secrets import Shares

NO_CONNECTION = (
    "ssh-login-needed",
    "ssh-denied",
    "ssh-key-unknown",
    "ssh-key-changed",
    "ssh-no-such-host",
    "ssh-no-route",
    "ssh-refused",
    "ssh-timeout",
)
"""Errors after which it is certain that nothing went out."""


class Advanced(msgspec.Struct, frozen=True):
    """What moved: runs that went out, runs that were refused, and what stopped the rest."""

    submitted: list[str] = []
    refused: dict[str, YurtError] = {}
    stopped: YurtError | None = None


def advance(store: Store, context: str, backend: Backend, *, fresh: str = "", watch: Watch = unwatched) -> Advanced:
    """Tell a site which runs are cancelled, then submit all that wait for it, in order.

    The index says already of the run `fresh` that it may have gone out.
    """
    if not store.outbox(context) and not store.cancels(context):
        return Advanced()
    submitted: list[str] = []
    refused: dict[str, YurtError] = {}
    with _alone(context), _untried(store, fresh, refused):
        try:
            for runs in _together(store.cancels(context)):
                with suppress(RefusedError):  # it is told again the next time, and holds up nobody
                    tell_cancel(store, runs, backend)
            for run in store.outbox(context):
                plan = store.plan(run)
                if plan is None or (plan := _in_turn(store, plan)) is None:
                    continue
                try:
                    values = _secrets(plan)
                except UserError as error:  # others need not wait for it
                    store.change([run], _without_secret(error.message, fresh=run == fresh))
                    continue
                watch(Event(f"submitting {run} to {context}"))
                try:
                    _submit(store, plan, backend, values, noted=run == fresh)
                    submitted.append(run)
                except RefusedError as error:
                    stops = error.code == "submit-limit" or (error.code in NO_CONNECTION and run != fresh)
                    if _partly_out(store, run):  # what has gone out of a sweep goes on; the rest waits
                        store.change_tasks(run, whole=partial(_because, error.message))
                    elif stops:
                        _stays(store, run, error.message)
                    if stops:
                        return Advanced(submitted, refused, error)
                    if _partly_out(store, run):
                        continue
                    if _tried_before(store, run):  # and may have gone out then: only a look can tell
                        _stays(store, run, error.message, "unknown")
                        continue
                    refused[run] = error
                    facts.forget(context)
                    backend.discard(Spot(run, plan.run.folder, plan.run.created))
                    _set(store, run, state="failed", reason=error.message, ended=time.time())
        except UnreachableError as error:
            return Advanced(submitted, refused, error)
    return Advanced(submitted, refused)


def _together(runs: Sequence[str]) -> list[list[str]]:
    """Runs each alone, tasks of one sweep together."""
    found: dict[str, list[str]] = {}
    for run in runs:
        found.setdefault(run.partition(".")[0] + ("." if "." in run else ""), []).append(run)
    return list(found.values())


def _in_turn(store: Store, plan: Plan) -> Plan | None:
    """The plan of a run that may go out now; None if it has to wait for others, or never will."""
    if _partly_out(store, plan.run.id):  # its turn has come
        return plan
    found = turn.turn(store, plan.run)
    if found.never:
        _set(store, plan.run.id, state="cancelled", reason=found.never, ended=time.time())
    elif found.later:
        _set(store, plan.run.id, state="waiting", reason=found.later, attempts=0)
    else:
        return turn.behind(plan, found.jobs)
    return None


def _partly_out(store: Store, run: str) -> bool:
    entry = store.get(run)
    return entry is not None and bool(entry.status.out)


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


def _without_secret(why: str, *, fresh: bool) -> Callable[[str, Status], Status]:
    """Waits for a yurt that knows the secret; one that may have gone out before is first looked for at its site."""

    def how(_run: str, status: Status) -> Status:
        if status.final:
            return status
        looked_for = status.state == "waiting" and (status.attempts == 0 or status.seen_at is not None)
        if fresh or looked_for:
            return msgspec.structs.replace(
                status, state="waiting", reason=why, attempts=0 if fresh else status.attempts
            )
        return msgspec.structs.replace(status, state="unknown", reason=why)

    return how


def _submit(store: Store, plan: Plan, backend: Backend, values: Mapping[str, bytes], *, noted: bool) -> None:
    """Submit one run. Whatever happens, the index says that it may have gone out before anything goes out."""
    run, context, project = plan.run.id, plan.run.context, plan.run.project
    if plan.run.sets:
        _submit_tasks(store, plan, backend, values, noted=noted)
        return
    if not noted and run not in store.change([run], lambda _run, status: _submitting(status)):
        return  # cancelled meanwhile
    entry = store.get(run)
    start = entry.status.start if entry is not None else 1
    if entry is not None and (start > 1 or entry.status.retries):
        plan = _elsewhere(store, plan)
    nonce = os.urandom(4).hex()
    known = store.code_at(context, project)
    try:
        known_there, hope = [known] if known else [], known in ("", plan.run.code.tree)
        placed = _place(plan, backend, nonce, known_there, hope=hope, start=start, shares=_shares(values))
    except UnreachableError as error:
        never, said = error.code in NO_CONNECTION, error.message
        store.change([run], lambda _run, status: _not_out(status, said, never=never))
        raise
    if plan.run.code.tree and plan.run.code.tree != known:
        store.note_code(context, project, plan.run.code.tree)
    store.change([run], lambda _run, status: _placed(status, placed))


def _submit_tasks(store: Store, plan: Plan, backend: Backend, values: Mapping[str, bytes], *, noted: bool) -> None:
    """Submit the tasks of a sweep that wait, in as few arrays as the site allows; what finds no room goes out later."""
    run, context, project = plan.run.id, plan.run.context, plan.run.project
    largest = _largest_array(context)
    if not _note_try(store, run, noted=noted):
        return  # cancelled meanwhile
    if store.tasks_in(run, ("waiting",)):  # some were out before, and failed
        plan = _elsewhere(store, plan)
    groups = numbering.groups(store.pending_tasks(run), largest, plan.parallel)
    if not groups:
        return  # what there was is to be cancelled
    tree = store.code_at(context, project)
    there, hope = [tree] if tree else [], tree in ("", plan.run.code.tree)
    nonce, shares, calls = os.urandom(4).hex(), _shares(values), _calls(store, plan)
    try:
        placed = _place(
            plan, backend, nonce, there, hope=hope, start=1, shares=shares, tasks=" ".join(groups), calls=calls
        )
    except UnreachableError as error:
        never, said = error.code in NO_CONNECTION, error.message
        store.change_tasks(run, whole=lambda status: _not_out(status, said, never=never and not status.out))
        raise
    if plan.run.code.tree and plan.run.code.tree != tree:
        store.note_code(context, project, plan.run.code.tree)
    if placed.winner == CANCELLED:
        entry = store.get(run)
        sweep_told(store, plan.run, set(numbering.numbers(entry.status.out)) if entry is not None else set())
        return
    out = [number for group in placed.groups for number in numbering.of_group(group)]

    def whole(status: Status) -> Status:
        noted = sent.noted(status, ((job, group) for group, job in placed.groups.items()))
        return msgspec.structs.replace(noted, submitted=time.time(), reason="", attempts=1)

    def each(_number: int, status: Status) -> Status:
        if status.state != "waiting":
            return status
        return msgspec.structs.replace(status, state="requeued", reason="it was submitted just now")

    again = set(store.tasks_in(run, ("waiting",)))
    store.change_tasks(run, [number for number in out if number in again], each, whole)


def _calls(store: Store, plan: Plan) -> bytes:
    """The calls of functions that a sweep makes; none if its site has them."""
    if not plan.calls or _partly_out(store, plan.run.id):
        return b""
    from yurt.store import calls

    found = calls.of(store, plan.run.id)
    if found is None:
        raise RefusedError(f"the calls of {plan.run.id} are not on this machine any more", code="calls-missing")
    return found


def _largest_array(context: str) -> int:
    """How many tasks one array may have."""
    found = contexts.named(context)
    if found.type != "slurm":
        return 1000
    from yurt.verbs import site

    return site.facts_of(found).max_array


def _note_try(store: Store, sweep: str, *, noted: bool) -> bool:
    """Write down that tasks of a sweep may go out now; False if it is to end, or has."""
    goes = False

    def whole(status: Status) -> Status:
        nonlocal goes
        goes = not (status.final or status.cancel)
        return msgspec.structs.replace(status, attempts=status.attempts + 1) if goes and not noted else status

    store.change_tasks(sweep, whole=whole)
    return goes


def _elsewhere(store: Store, plan: Plan) -> Plan:
    """For another start: without the nodes that failed."""
    context = contexts.named(plan.run.context)
    asked, _nodes = bad_nodes.avoiding(store, context.name, plan.run.asked, facts.load(context))
    return msgspec.structs.replace(plan, run=msgspec.structs.replace(plan.run, asked=asked))


def _shares(values: Mapping[str, bytes]) -> Shares | None:
    """Shares for one nonce: those of two submissions do not fit together, and need not."""
    if not values:
        return None
    from yurt.model import secrets

    return secrets.shares(values, os.urandom)


def _not_out(status: Status, why: str, *, never: bool) -> Status:
    if status.final:
        return status
    # One that may have gone out stays so; how often a site was not reached says nothing of how often it forgot.
    attempts = max(status.attempts - 1, 0 if never else 1)
    return msgspec.structs.replace(status, state="waiting", reason=why, attempts=attempts)


def _submitting(status: Status) -> Status:
    if status.final or status.cancel:
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
        state="queued" if status.start == 1 else "requeued",
        reason="it was submitted just now",
        job=placed.job,
        submitted=time.time(),  # of the last time: a crash may lose that one
        rooted=False,
        missing_since=None,
    )


def _place(
    plan: Plan,
    backend: Backend,
    nonce: str,
    known: Sequence[str],
    *,
    hope: bool,
    start: int,
    shares: Shares | None,
    tasks: str = "",
    calls: bytes = b"",
) -> Placed:
    """Submit, with the code if the site has not got it: one trip if what it has was known, else two."""
    from yurt.snapshot import send

    receiver = send.receiver() if plan.run.code.tree else ""
    code = CodeParcel(receiver=receiver) if hope or not plan.run.code.tree else _parcel(plan, known)
    for _try in range(4):
        placed = backend.submit(plan, nonce, code, start=start, tasks=tasks, shares=shares, calls=calls)
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
    from yurt import snapshot
    from yurt.snapshot import send

    taken = snapshot.Snapshot(plan.run.code.tree, plan.run.code.files, plan.run.code.size, Path(plan.store))
    code = send.code_for(taken, known)
    return CodeParcel(receiver=send.receiver(), kind=code.kind, base=code.base, content=code.content)
