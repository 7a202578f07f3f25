"""Follows a dev node through the queue and the phases of its holder, until its workspace is ready."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import msgspec

from yurt.contexts import connect
from yurt.dev import holder
from yurt.dev.ask import ask
from yurt.dev.holder import HolderStatus
from yurt.errors import YurtError
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.starting import ended_before, until_running
from yurt.lifecycle.steps import STEPS
from yurt.store import Entry, Store

PATIENCE = 60.0
"""Seconds for which a job waits for a node that yurt chose."""

EXPECTED = 15.0
"""Seconds between two queries for the expected start."""

SOON = 3.0
"""Seconds until the first of them: the scheduler has then looked at the job."""

READY = "its workspace was ready"

FRESH = 90.0
"""A holder writes its status every minute."""

BETWEEN = 5.0

SILENT = "its node does not answer"


class Followed(msgspec.Struct, frozen=True):
    """What `on_wait` shows: a run that is not ready, and why."""

    entry: Entry
    phase: str = ""
    """What the holder does; empty before the job runs."""
    expected: float | None = None
    """When the scheduler expects to start the job."""


Waiting = Callable[[Followed, Sequence[str]], None]


class Following:
    """Follows a dev node through the queue and the phases of its holder."""

    def __init__(self, store: Store, entry: Entry, on_wait: Waiting, wish: str) -> None:
        self._store, self._entry, self._on_wait, self._wish = store, entry, on_wait, wish
        self._since = time.monotonic()
        self._ask_at = self._since + SOON
        self._answer_at = 0.0
        self._expected: float | None = None

    def until_ready(self) -> Entry:
        """Return the run when its workspace is ready. RefusedError: it ended before."""
        self._entry = until_running(self._store, self._entry, self._pending, before=READY, on_refresh=self._queued)
        backend = connect.named_backend(self._entry.run.context)
        checked, pause = time.monotonic(), 0.2
        while True:
            status = holder.read(backend.files.read(self._entry.run.folder, holder.STATUS))
            if status is not None and status.phase == "ready" and self._answers(status):
                return self._store.get(self._entry.run.id) or self._entry
            phase = "starting" if status is None else holder.phase_text(status)
            phase = SILENT if phase == "ready" else phase
            self._on_wait(Followed(self._entry, phase), [])
            time.sleep(pause)
            pause = min(1.0, pause * 1.3)
            if time.monotonic() - checked > 2:
                self._check_running()
                checked = time.monotonic()

    def _answers(self, status: HolderStatus) -> bool:
        """Return whether a holder is alive. One that wrote its status a while ago may have lost its node."""
        if time.time() - status.written < FRESH:
            return True
        if time.monotonic() < self._answer_at:
            return False
        self._answer_at = time.monotonic() + BETWEEN
        try:
            ask(self._entry, {"do": "info"})
        except YurtError:
            return False
        return True

    def _check_running(self) -> None:
        refresh_contexts(self._store, [self._entry.run.context], steps=STEPS, keep=False)
        self._entry = self._store.get(self._entry.run.id) or self._entry
        if self._entry.status.final:
            raise ended_before(self._entry, READY)

    def _pending(self, entry: Entry, warnings: Sequence[str]) -> None:
        self._on_wait(Followed(entry, expected=self._expected), warnings)

    def _queued(self, entry: Entry) -> None:
        """Ask for the expected start now and then, and give up a node that does not become free."""
        self._entry, now = entry, time.monotonic()
        if entry.status.state != "queued" or not entry.status.job or now < self._ask_at:
            return
        self._ask_at = now + EXPECTED
        backend = connect.named_backend(entry.run.context)
        try:
            live = backend.site.look([])
            mine = next((job for job in live.queue.mine if job.job == entry.status.job), None)
            self._expected = mine.starts_at if mine is not None else None
            busy = mine is not None and mine.reason in ("Resources", "Priority")
            if self._wish and busy and now - self._since >= PATIENCE:
                wish, self._wish = self._wish, ""
                backend.runs.allow_any_node(entry.status.job)
                self._on_wait(Followed(entry), [f"{wish} is not free; the job may now start on any node"])
        except YurtError as error:
            self._on_wait(Followed(entry), [error.message])
