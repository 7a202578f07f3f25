"""Uploads the large code of a run, before its submission. Nothing is submitted until then, and the index says so."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from yurt.lifecycle.outbox import claims
from yurt.lifecycle.outbox.claims import Claim
from yurt.model.progress import Event, Watch, patience

if TYPE_CHECKING:
    from yurt.backends.answers import CodeParcel, Uploaded
    from yurt.backends.base import Backend
    from yurt.model.run import Plan
    from yurt.store import Store

LOOK = 1.0
"""Seconds between two looks whether the run was cancelled."""


class Postponed(Exception):
    """The code of the run is large and there is no time to upload it now, or not all of it."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class Stopped(Exception):
    """The run was cancelled during the upload."""


class Uploader:
    """Uploads the code of one run."""

    def __init__(
        self, store: Store, plan: Plan, backend: Backend, claim: Claim, *, watch: Watch, seconds: float | None
    ) -> None:
        """`seconds`: how long this may take; None: as long as needed. What was uploaded is kept for the next time."""
        self._store, self._plan, self._backend, self._claim, self._watch = store, plan, backend, claim, watch
        self.seconds, self._until = seconds, None if seconds is None else time.monotonic() + seconds
        self._looked = time.monotonic()

    def build(self) -> bool:
        """Start to build the environment of the run; return whether it is complete already."""
        from yurt.envs.of_runs.build import start_saved

        run = self._plan.run
        assert run.env is not None
        return start_saved(run.context, run.env, self._backend.envs, self._watch)

    def check_time(self, parcel: CodeParcel) -> None:
        """Postponed if there is no time for an upload."""
        if self.seconds == 0:
            raise Postponed(f"its code ({len(parcel.content) / 1e6:.1f} MB) is not uploaded yet")

    def upload(self, parcel: CodeParcel) -> Uploaded:
        """Upload the code, or wait until another process that uploads the same code has finished.

        Postponed or Stopped: the run is not submitted.
        """
        self._claim.set_phase("uploading")
        try:
            return self._upload(parcel)
        finally:
            self._claim.set_phase("submitting")

    def _upload(self, parcel: CodeParcel) -> Uploaded:
        context, digest = self._plan.run.context, parcel.digest
        own = claims.take(f"{context}-{digest[:16]}")
        if own is None:
            self._wait_for_another(f"{context}-{digest[:16]}")
            return "complete"  # if not, the site asks for the code again
        with own:
            resume = self._store.upload_interrupted(context, digest)
            self._store.note_upload(context, digest, self._plan.run.id)
            done = self._backend.code.upload(
                self._plan.project_folder,
                self._plan.run.code.tree,
                parcel,
                resume=resume,
                moved=lambda count: self._moved(count, len(parcel.content)),
            )
            self._store.forget_upload(context, digest)
        return done

    def _wait_for_another(self, name: str) -> None:
        self._watch(Event(f"waiting for another yurt process that uploads the code of {self._plan.run.id}"))
        with patience(f"another yurt process that uploads the code of {self._plan.run.id}"):
            while (claim := claims.take(name)) is None:
                self._look("another yurt process is uploading its code")
                time.sleep(0.2)
        claim.release()

    def _moved(self, count: int, total: int) -> None:
        self._watch(Event(f"uploading the code of {self._plan.run.id}", count, total, bytes=True))
        if count < total:
            self._look(f"{count / 1e6:.1f} of {total / 1e6:.1f} MB of its code are uploaded")

    def _look(self, text: str) -> None:
        now = time.monotonic()
        if now - self._looked >= LOOK:
            self._looked = now
            entry = self._store.get(self._plan.run.id)
            if entry is None or entry.status.final or entry.status.cancel_requested:
                raise Stopped
        if self._until is not None and now > self._until:
            raise Postponed(text)
