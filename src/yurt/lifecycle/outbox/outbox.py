"""Submits the outbox of a context: first cancellations, then runs, as far as the site accepts them.

Runs are submitted in the order of their creation. Three kinds of runs do not block later ones: those that another
process is uploading, those whose large code must be uploaded first, and those whose packages cannot be downloaded. If
the site is unreachable, all stay in the outbox.

No process waits for another one's transfer: it claims each run while it submits it, and skips claimed runs. The gate of
a run makes a second submission harmless; claims only avoid it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from yurt.clocks import clocks
from yurt.config import contexts, facts
from yurt.contexts.advance import Advanced
from yurt.errors import DownloadError, RefusedError, UnreachableError, UserError, YurtError
from yurt.lifecycle.outbox import claims, dependencies
from yurt.lifecycle.outbox import refused as refused_runs
from yurt.lifecycle.outbox.claims import Claim
from yurt.lifecycle.outbox.submit import NO_CONNECTION, partly_submitted, submit
from yurt.lifecycle.outbox.upload import Postponed, Uploader
from yurt.model import ids, layout
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.run import Plan, Status
from yurt.model.state import PURGE
from yurt.store import Store

if TYPE_CHECKING:
    from yurt.backends.base import Backend


def send_waiting(
    store: Store,
    context: str,
    backend: Backend,
    watch: Watch = unwatched,
    *,
    fresh: str = "",
    claim: Claim | None = None,
) -> Advanced:
    """Cancel runs on a site, then submit the runs in its outbox, in order, up to the site's submit limits.

    The index already records the run `fresh` as being submitted, and `claim` is its claim. Large code is uploaded only
    for that run; the result lists other runs that need such an upload (see `send_large`).
    """
    if not store.outbox(context) and not store.cancels(context):
        return Advanced()
    sending = _Sending(store, context, backend, watch, fresh=fresh, claim=claim)
    with _reset_untried(store, fresh, sending.refused):
        try:
            if cancels := store.cancels(context):
                from yurt.lifecycle.outbox.cancellations import tell_cancel

                try:
                    tell_cancel(store, cancels, backend.runs)
                except YurtError as error:  # repeated the next time; must not block other runs
                    if error.code != "cancel-unconfirmed" and not isinstance(error, RefusedError):
                        raise
            sending.submit_all(store.outbox(context))
        except UnreachableError as error:
            return sending.result(error)
        except RefusedError as error:
            if error.code not in NO_CONNECTION:
                raise
            return sending.result(error)
    return sending.result(None)


def send_large(
    store: Store, context: str, backend: Backend, runs: Sequence[str], watch: Watch, *, seconds: float | None
) -> Advanced:
    """Submit runs whose code is large, for up to so many seconds; None: no limit. A later call continues the upload."""
    sending = _Sending(store, context, backend, watch)
    until = None if seconds is None else time.monotonic() + seconds
    try:
        for run in runs:
            left = None if until is None else until - time.monotonic()
            if left is None or left > 0:
                sending.submit_one(run, left)
    except UnreachableError as error:
        return sending.result(error)
    except RefusedError as error:
        if error.code not in NO_CONNECTION:
            raise
        return sending.result(error)
    return sending.result(None)


class _Sending:
    """One pass over the outbox of a context, and its results so far."""

    def __init__(
        self, store: Store, context: str, backend: Backend, watch: Watch, *, fresh: str = "", claim: Claim | None = None
    ) -> None:
        self.store, self.context, self.backend, self.watch = store, context, backend, watch
        self.fresh, self._claim = fresh, claim
        self.large: list[str] = []
        self.submitted: list[str] = []
        self.refused: dict[str, YurtError] = {}
        self.notes: dict[str, str] = {}
        self._full: dict[tuple[str | None, ...], YurtError] = {}
        self._no_room: dict[str, YurtError] = {}
        self._no_packages: dict[str | bytes, DownloadError] = {}
        """By the folder or the declaration of an environment: each is tried once in a pass."""

    def result(self, stopped: YurtError | None) -> Advanced:
        full = next((each for each in (*self._full.values(), *self._no_room.values())), None)
        return Advanced(self.submitted, self.refused, stopped or full, self.notes, self.large)

    def submit_all(self, runs: Sequence[str]) -> None:
        """Submit runs in order. If another process is doing that, leave the rest to it, except the fresh run."""
        patience, alone = clocks().overtake if self.fresh else 0.0, False
        for run in runs:
            if run == self.fresh:
                self._submit_claimed(run, self._claim, None)
            elif not alone:
                started = time.monotonic()
                claim, alone = _take(run, patience)
                patience = max(0.0, patience - (time.monotonic() - started))
                self._submit_claimed(run, claim, 0)

    def submit_one(self, run: str, seconds: float | None) -> None:
        """Submit a run that no other process is submitting. `seconds`: how long an upload may take."""
        self._submit_claimed(run, claims.take(run), seconds)

    def _submit_claimed(self, run: str, claim: Claim | None, seconds: float | None) -> None:
        if claim is None:
            return
        with claim:
            if seconds == 0 and self.store.needs_upload(run) and self.store.is_in_outbox(run):
                self.large.append(run)  # do not query the site to find that out again
            elif self.store.is_in_outbox(run) and (plan := self.next_plan(run)) is not None:
                self.submit(plan, claim, seconds)

    def next_plan(self, run: str) -> Plan | None:
        """Return the plan of a run that can be submitted now."""
        plan = self.store.plan(run)
        if plan is None or _queue(plan) in self._full:
            return None
        jobs = _jobs_before(self.store, plan, fresh=run == self.fresh)
        if jobs is None:
            return None
        if draft := self.store.draft(run):
            plan = self._settled(run, draft)
            if plan is None:
                return None
        plan = dependencies.behind(self.store, plan, jobs)
        error = self._no_room.get(plan.run.code.tree) if run != self.fresh else None
        if error is not None:  # the same code does not fit either; do not upload it again for each run
            refused_runs.set_fields(self.store, run, reason=error.message)
            return None
        if error := self._no_packages.get(plan.setup.env):
            self._lacks_packages(run, plan.setup.env, error)
            return None
        return None if self._leaves(plan) or _purged(self.store, plan, self.backend) else plan

    def _leaves(self, plan: Plan) -> bool:
        """Whether a candidate of a race, whose start was lost, leaves the next one to new candidates."""
        if plan.race is None or not plan.run.restart_policy.retries:
            return False
        from yurt.lifecycle.outbox import lost_start  # few runs are candidates

        return lost_start.leaves(self.store, plan, self.backend.claims)

    def _settled(self, run: str, draft: bytes) -> Plan | None:
        """Complete the plan of a run whose site was never reached. None: the run has failed; the site rejects it."""
        from yurt.lifecycle.plan.settle import Draft, settle_later

        declared = msgspec.json.decode(draft, type=Draft).declared
        if known := self._no_packages.get(declared):
            self._lacks_packages(run, declared, known)
            return None
        try:
            planned = settle_later(draft, contexts.site(self.context), self.store, self.watch)
        except DownloadError as error:
            self._lacks_packages(run, declared, error)
            return None
        except UnreachableError:
            raise
        except (RefusedError, UserError) as error:
            if error.code in NO_CONNECTION:
                raise
            refused_runs.end(self.store, run, "failed", error.message)
            self.refused[run] = error
            return None
        if planned.warnings:
            self.notes[run] = "; ".join(planned.warnings)
        self.store.settle(planned.plan)
        return planned.plan

    def _lacks_packages(self, run: str, env: str | bytes, error: DownloadError) -> None:
        """Keep a run whose packages cannot be downloaded. That says nothing about the site: later runs go on."""
        self._no_packages[env] = error
        refused_runs.set_fields(self.store, run, reason=error.message)
        if run != self.fresh:
            self.notes[run] = f"it is not yet submitted: {error.message}"

    def submit(self, plan: Plan, claim: Claim, seconds: float | None) -> None:
        """Submit one run. A rejected run does not block the next ones; RefusedError: there is no connection."""
        run, fresh = plan.run.id, plan.run.id == self.fresh
        try:
            values = _secrets(plan)
        except UserError as error:  # must not block other runs
            _note_missing_secret(self.store, run, error.message, fresh=fresh)
            return
        self.watch(Event(f"submitting {run} to {self.context}"))
        uploader = Uploader(self.store, plan, self.backend, claim, watch=self.watch, seconds=seconds)
        try:
            if note := submit(self.store, plan, self.backend.runs, values, uploader, noted=fresh):
                self.notes[run] = note
            self.submitted.append(run)
        except Postponed:
            self.large.append(run)
        except DownloadError as error:
            self._lacks_packages(run, plan.setup.env, error)
        except RefusedError as error:
            self._rejected(plan, error, fresh=fresh)

    def _rejected(self, plan: Plan, error: RefusedError, *, fresh: bool) -> None:
        run, offline = plan.run.id, error.code in NO_CONNECTION and not fresh
        if error.code == "submit-limit":
            self._full[_queue(plan)] = error
        elif error.code in refused_runs.NO_ROOM and not plan.calls:  # large calls may be what does not fit
            self._no_room[plan.run.code.tree] = error
        if error.code == "submit-limit" or offline or (error.code in refused_runs.TEMPORARY and not fresh):
            refused_runs.keep(self.store, run, error.message)
        elif refused_runs.give_up(self.store, plan, self.backend, error.message):
            self.refused[run] = error
            facts.forget(self.context)
        if offline:
            raise error


def _purged(store: Store, plan: Plan, backend: Backend) -> bool:
    """End a run as lost if it may have been submitted, long ago, and its run folder does not exist.

    Without the gate in that folder, another submission could start the run a second time.
    """
    entry = store.get(plan.run.id)
    since = entry.status.unsure_since if entry is not None and entry.status.start == 1 else None
    if since is None or time.time() - since < PURGE:
        return False
    try:
        if backend.files.read(plan.run.folder, layout.RUN) is not None:
            return False
    except RefusedError:  # it may exist: neither submit the run nor end it
        return True
    why = f"its submission was interrupted {(time.time() - since) / 86400:.0f} days ago, and it may have run since"
    refused_runs.end(store, plan.run.id, "lost", f"{why}: its run folder does not exist")
    return True


def _queue(plan: Plan) -> tuple[str | None, ...]:
    """Return what a site's submit limits depend on: if one queue is full, others may not be."""
    resources = plan.run.resources
    return resources.account, resources.partition, resources.qos


def _jobs_before(store: Store, plan: Plan, *, fresh: bool) -> list[str] | None:
    """Return the jobs that a run must follow if it is submitted now; None if it cannot be, or is cancelled."""
    found = dependencies.turn(store, plan.run)
    if partly_submitted(store, plan.run.id):  # the rest follows the same jobs; job.sh checks whether they completed
        return found.jobs
    if found.never:
        refused_runs.set_fields(store, plan.run.id, state="cancelled", reason=found.never, ended=time.time())
    elif found.later:
        untried = {"attempts": 0, "unsure_since": None} if fresh else {}
        refused_runs.set_fields(store, plan.run.id, state="waiting", reason=found.later, **untried)
    else:
        return found.jobs
    return None


@contextmanager
def _reset_untried(store: Store, fresh: str, refused: dict[str, YurtError]) -> Iterator[None]:
    """Reset the run `fresh` to waiting if it was recorded as being submitted, but no attempt was made."""
    yield
    entry = store.get(fresh) if fresh and fresh not in refused else None
    if entry is not None and entry.status.state == "submitting" and entry.status.attempts == 1:
        refused_runs.set_fields(store, fresh, state="waiting", attempts=0, unsure_since=None)


def _take(run: str, patience: float) -> tuple[Claim | None, bool]:
    """Claim a run; wait a moment for a process that is submitting it, but not for one that is uploading its code.

    Return also whether another process is still submitting it.
    """
    until = time.monotonic() + patience
    while (claim := claims.take(run)) is None and claims.phase(run) == "submitting":
        if time.monotonic() >= until:
            return None, True
        time.sleep(0.02)
    return claim, False


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
            refused_runs.keep(store, run, why)
        else:
            refused_runs.set_fields(store, run, reason=why)
        return

    def how(_run: str, status: Status) -> Status:
        if status.final:
            return status
        checked = status.state == "waiting" and (status.attempts == 0 or status.seen_at is not None)
        if fresh or checked:
            attempts, unsure = (0, None) if fresh else (status.attempts, status.unsure_since)
            return msgspec.structs.replace(status, state="waiting", reason=why, attempts=attempts, unsure_since=unsure)
        return msgspec.structs.replace(status, state="unknown", reason=why)

    store.change([run], how)
