"""Submits one run, or the pending tasks of a sweep. The index records the attempt before anything is sent."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from yurt.backends.answers import ChangedFiles, CodeParcel, Placed, Uploaded
from yurt.config import contexts, facts
from yurt.contexts import bad_nodes
from yurt.errors import DownloadError, RefusedError, UnreachableError, YurtError
from yurt.lifecycle.outbox import room
from yurt.lifecycle.outbox.deliver import place
from yurt.lifecycle.outbox.upload import Postponed, Stopped, Uploader
from yurt.model import ids, sent
from yurt.model import tasks as numbering
from yurt.model.run import Plan, Status
from yurt.model.state import BUILDING, CANCELLED, WAITS_FOR_SYNC, never_started
from yurt.store import Store

if TYPE_CHECKING:
    from yurt.backends.base import Runs
    from yurt.model.secrets import Shares

NO_CONNECTION = (
    "ssh-login-required",
    "ssh-denied",
    "ssh-key-unknown",
    "ssh-key-changed",
    "ssh-no-such-host",
    "ssh-no-route",
    "ssh-refused",
    "ssh-timeout",
)
"""Errors after which it is certain that nothing was submitted."""


def submit(
    store: Store, plan: Plan, runs: Runs, values: Mapping[str, bytes], uploader: Uploader, *, noted: bool
) -> str:
    """Submit one run. The index records that it may be submitted before anything is sent.

    Return a note for the user: nodes that failed before are not avoided, or the code on the site had changed. Else an
    empty text. Postponed: its code must be uploaded first, and there is no time for that.
    """
    run, context, project = plan.run.id, plan.run.context, plan.run.project
    if plan.run.tasks:
        return _submit_tasks(store, plan, runs, values, uploader, noted=noted)
    if not noted and run not in store.change([run], lambda _run, status: _submitting(status)):
        return ""  # cancelled in the meantime
    entry = store.get(run)
    start = entry.status.start if entry is not None else 1
    replaces = plan.run.retry_of if plan.race is not None else ""  # a candidate that failed
    if entry is not None and (start > 1 or entry.status.retries or replaces):
        plan = _avoid_bad_nodes(store, plan)
    nonce = os.urandom(4).hex()
    needed = room.need(store, plan) if start == 1 else None
    known = store.code_at(context, project)
    uploading = _Uploading(store, run, uploader)
    try:
        trees, hope = [known] if known else [], known in ("", plan.run.code.tree)
        shares = _shares(values)
        placed, note = _place(
            plan,
            lambda plan: place(
                plan,
                runs,
                nonce,
                trees,
                hope=hope,
                start=start,
                shares=shares,
                upload=uploading.upload,
                build=uploader.build,
                room=None if needed is None else needed.tier,
            ),
        )
    except Stopped:
        return ""
    except UnreachableError as error:
        never, why = _never_reached(error) or uploading.failed, error.message
        store.change([run], lambda _run, status: _not_submitted(status, why, never=never))
        raise
    if plan.run.code.tree and plan.run.code.tree != known:
        store.note_code(context, project, plan.run.code.tree)
    store.change([run], lambda _run, status: _placed(status, placed, note, unsynced=plan.run.home_sync))
    return _joined(
        note, _about_changed(placed.changed), _about_env(placed.env_change), _about_room(needed, placed, plan)
    )


def _submit_tasks(
    store: Store, plan: Plan, runs: Runs, values: Mapping[str, bytes], uploader: Uploader, *, noted: bool
) -> str:
    """Submit the pending tasks of a sweep in as few arrays as possible. Tasks above a submit limit stay pending."""
    run, context, project = plan.run.id, plan.run.context, plan.run.project
    largest = _largest_array(context)
    if not _note_try(store, run, noted=noted):
        return ""  # cancelled in the meantime
    if store.tasks_in(run, ("waiting",)):  # tasks that are submitted again after a failure
        plan = _avoid_bad_nodes(store, plan)
    groups = numbering.groups(store.pending_tasks(run), largest, plan.parallel)
    if not groups:
        return ""  # all pending tasks are cancelled
    tree = store.code_at(context, project)
    trees, hope = [tree] if tree else [], tree in ("", plan.run.code.tree)
    nonce, shares, calls = os.urandom(4).hex(), _shares(values), _calls(store, plan)
    needed = room.need(store, plan)
    uploading = _Uploading(store, run, uploader)
    try:
        placed, note = _place(
            plan,
            lambda plan: place(
                plan,
                runs,
                nonce,
                trees,
                hope=hope,
                start=1,
                shares=shares,
                tasks=" ".join(groups),
                calls=calls,
                upload=uploading.upload,
                build=uploader.build,
                room=None if needed is None else needed.tier,
            ),
        )
    except Stopped:
        return ""
    except UnreachableError as error:
        never, why = _never_reached(error) or uploading.failed, error.message
        store.change_tasks(
            run, whole=lambda status: _not_submitted(status, why, never=never and not status.submitted_tasks)
        )
        raise
    if plan.run.code.tree and plan.run.code.tree != tree:
        store.note_code(context, project, plan.run.code.tree)
    if placed.winner == CANCELLED:
        from yurt.lifecycle.outbox.cancellations import note_sweep_cancelled

        entry = store.get(run)
        note_sweep_cancelled(
            store, plan.run, set(numbering.numbers(entry.status.submitted_tasks)) if entry is not None else set()
        )
        return ""
    out = [number for group in placed.groups for number in numbering.of_group(group)]

    def whole(status: Status) -> Status:
        noted = sent.noted(status, ((job, group) for group, job in placed.groups.items()))
        reason = note or (BUILDING if placed.building else "")
        return msgspec.structs.replace(
            noted,
            submitted=time.time(),
            reason=reason,
            attempts=1,
            unsure_since=None,
            building=placed.building or status.building,
        )

    def each(_number: int, status: Status) -> Status:
        if status.state != "waiting":
            return status
        return msgspec.structs.replace(status, state="requeued", reason="just submitted")

    again = set(store.tasks_in(run, ("waiting",)))
    store.change_tasks(run, [number for number in out if number in again], each, whole)
    return _joined(
        note, _about_changed(placed.changed), _about_env(placed.env_change), _about_room(needed, placed, plan)
    )


def _never_reached(error: UnreachableError) -> bool:
    """Whether it is certain that nothing was submitted: packages are downloaded before that."""
    return error.code in NO_CONNECTION or isinstance(error, DownloadError)


class _Uploading:
    """Uploads large code of a run; the index records that this attempt has not submitted the run yet."""

    def __init__(self, store: Store, run: str, uploader: Uploader) -> None:
        self._store, self._run, self._uploader = store, run, uploader
        self.failed = False
        """Whether the upload failed: then it is certain that this attempt submitted nothing."""

    def upload(self, parcel: CodeParcel) -> Uploaded:
        """See `Uploader.upload`. YurtError: the attempt counts again, as for an error of the submission."""
        size = f"{len(parcel.content) / 1e6:.1f} MB"
        try:
            self._uploader.check_time(parcel)
            self._set(lambda status: _not_submitted(status, f"uploading its code ({size})", never=True))
            done = self._uploader.upload(parcel)
        except Postponed as error:
            text = error.text
            if self._uploader.seconds == 0:
                self._set(lambda status: _not_submitted(status, text, never=True))
            else:
                self._set(lambda status: status if status.final else msgspec.structs.replace(status, reason=text))
            raise
        except YurtError:
            self.failed = True
            self._try_again()
            raise
        if not self._try_again():
            raise Stopped
        return done

    def _try_again(self) -> bool:
        """Record an attempt to submit the run; False if it was cancelled during the upload."""
        if ids.is_sweep(self._run):
            return _note_try(self._store, self._run, noted=False)
        return self._run in self._store.change([self._run], lambda _run, status: _submitting(status))

    def _set(self, how: Callable[[Status], Status]) -> None:
        if ids.is_sweep(self._run):
            self._store.change_tasks(self._run, whole=how)
        else:
            self._store.change([self._run], lambda _run, status: how(status))


def _place(plan: Plan, send: Callable[[Plan], Placed]) -> tuple[Placed, str]:
    """Submit a plan. If the scheduler rejects it, try also the nodes that yurt avoids: better there than nowhere.

    Return also a note that says so.
    """
    try:
        return send(plan), ""
    except RefusedError as error:
        anywhere, nodes = bad_nodes.not_avoiding(plan) if error.code == "job-refused" else (plan, [])
        if not nodes:
            raise
        return send(anywhere), f"no other node can run it, so it may use nodes that failed recently: {', '.join(nodes)}"


def _about_room(needed: room.Need | None, placed: Placed, plan: Plan) -> str:
    """Return a warning if the run may overflow its storage tier."""
    return "" if needed is None else room.warning(needed, placed.room, plan)


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)


def _about_env(change: str) -> str:
    """Return a note about an environment whose packages somebody has changed."""
    return f"its environment was not as it had been built ({change}), so it is built again" if change else ""


def _about_changed(changed: ChangedFiles) -> str:
    """Return a note about files of the code on the site that were not as they were uploaded."""
    if not changed.count:
        return ""
    more = changed.count - len(changed.names)
    names = ", ".join(changed.names) + (f" and {more} more" if more else "")
    return (
        f"files of its code on the site had been changed or removed, and the code was uploaded again: {names}"
        " (a run that changes its code needs `--copy`)"
    )


def _calls(store: Store, plan: Plan) -> bytes:
    """Return the function calls of a sweep; empty if its site has them."""
    if not plan.calls or partly_submitted(store, plan.run.id):
        return b""
    from yurt.store import calls

    found = calls.of(store, plan.run.id)
    if found is None:
        raise RefusedError(
            f"the calls of sweep {plan.run.id} are no longer on this machine",
            code="calls-missing",
            hint="submit the calls again from your program",
        )
    return found


def _largest_array(context: str) -> int:
    from yurt.contexts.facts import facts_if_probed
    from yurt.model.facts import largest_array

    return largest_array(facts_if_probed(contexts.named(context)))


def _note_try(store: Store, sweep: str, *, noted: bool) -> bool:
    """Record an attempt to submit tasks of a sweep; False if it is cancelled or finished."""
    goes = False

    def whole(status: Status) -> Status:
        nonlocal goes
        goes = not (status.final or status.cancel_requested)
        return _tried(status) if goes and not noted else status

    store.change_tasks(sweep, whole=whole)
    return goes


def _avoid_bad_nodes(store: Store, plan: Plan) -> Plan:
    """Return the plan for another start, with the nodes that failed excluded."""
    context = contexts.named(plan.run.context)
    resources, nodes = bad_nodes.avoiding(store, context.name, plan.run.resources, facts.load(context))
    settings = [*plan.run.settings, *bad_nodes.as_settings(nodes)]
    return msgspec.structs.replace(plan, run=msgspec.structs.replace(plan.run, resources=resources, settings=settings))


def _shares(values: Mapping[str, bytes]) -> Shares | None:
    """Split secrets into shares for one nonce. Shares of different submissions do not fit together."""
    if not values:
        return None
    from yurt.model import secrets

    return secrets.shares(values, os.urandom)


def _not_submitted(status: Status, why: str, *, never: bool) -> Status:
    if status.final:
        return status
    # A run that may have been submitted keeps one attempt. An unreachable site must not count as a lost job.
    attempts = max(status.attempts - 1, 0 if never else 1)
    unsure = status.unsure_since if attempts else None
    return msgspec.structs.replace(status, state="waiting", reason=why, attempts=attempts, unsure_since=unsure)


def _submitting(status: Status) -> Status:
    if status.final or status.cancel_requested:
        return status
    return msgspec.structs.replace(_tried(status), state="submitting")


def _tried(status: Status) -> Status:
    return msgspec.structs.replace(
        status, attempts=status.attempts + 1, unsure_since=status.unsure_since or time.time()
    )


def _placed(status: Status, placed: Placed, note: str, *, unsynced: bool) -> Status:
    if status.final:
        return status
    if placed.winner == CANCELLED:
        return never_started(status, time.time())
    held = unsynced and status.start == 1 and not placed.building
    why = BUILDING if placed.building else WAITS_FOR_SYNC if held else "just submitted"
    return msgspec.structs.replace(
        status,
        state="held" if held else "queued" if status.start == 1 else "requeued",
        reason=note or why,
        job=placed.job,
        building=placed.building,
        submitted=time.time(),  # of the last attempt, which a crash of the site may lose
        confirmed=False,
        missing_since=None,
        unsure_since=None,
    )


def partly_submitted(store: Store, run: str) -> bool:
    entry = store.get(run)
    return entry is not None and bool(entry.status.submitted_tasks)
