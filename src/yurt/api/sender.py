"""Submits calls to their context, many in one sweep, and fetches their results, in two threads of its own."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

from yurt.api import pickles
from yurt.api.batch import Batch, Posted
from yurt.api.errors import CallError
from yurt.api.future import Call
from yurt.api.receiver import Receiver, Submitted, fail
from yurt.lifecycle.outbox.enqueue import enqueue
from yurt.lifecycle.plan import plan as planning
from yurt.lifecycle.plan.request import Request
from yurt.model import calls
from yurt.model.context import Context
from yurt.sites import connect, folders
from yurt.sites.project import Project
from yurt.store import Store
from yurt.store import calls as saved_calls

log = logging.getLogger("yurt")


class Sender:
    """The connection of one executor to its context. `request` makes the request of a batch from its sets and title."""

    def __init__(self, context: Context, request: Callable[[Sequence[dict[str, Any]], str], Request]) -> None:
        self._context, self._request, self._project = context, request, Project()
        self.batch = Batch()
        self.receiver = Receiver(context.name, context.type, connect.backend(context).files)
        self._lock = threading.RLock()
        self._threads: list[threading.Thread] = []
        self._broken: BaseException | None = None
        self._process = os.getpid()

    def post(self, posted: Posted) -> None:
        """Queue a call. RuntimeError: the executor is shut down. CallError: it failed, or this process is a fork."""
        if self._is_fork():
            raise CallError(
                "the executor belongs to the parent process and cannot be used after a fork",
                code="call-not-sent",
                hint="create an executor in this process with `yurt.executor(…)`",
            )
        if self._broken is not None:
            raise CallError(
                f"the executor failed: {self._broken}",
                code="call-not-sent",
                hint="create a new executor with `yurt.executor(…)`",
            ) from self._broken
        with self._lock:
            self.batch.post(posted)
            if not self._threads:
                self._threads = [
                    threading.Thread(target=self._guarded, args=(work,), name=f"yurt {name}")
                    for name, work in (("sender", self._send), ("receiver", self.receiver.receive))
                ]
                for each in self._threads:
                    each.start()

    def close(self) -> None:
        """Accept no more calls. Those that are queued are submitted, and their results are fetched."""
        if self._is_fork():
            return
        with self._lock:
            self.batch.close()
            if not self._threads:
                self.receiver.complete()

    def open(self) -> list[Call]:
        """Return all calls without a result. Removes those still queued: they will not be submitted."""
        return [*self.batch.empty(), *self.batch.taken(), *self.receiver.open()]

    def wait_submitted(self) -> None:
        """Wait until all queued calls are submitted."""
        for each in self._threads[:1]:
            each.join()

    def join(self) -> None:
        for each in self._threads:
            each.join()

    def _is_fork(self) -> bool:
        """Whether this process is a fork of the one that created the executor; a fork has none of its threads."""
        return os.getpid() != self._process

    def _guarded(self, work: Callable[[Store], None]) -> None:
        """Run the work of a thread. If it fails, every open call gets the error."""
        try:
            with folders.store() as store:
                work(store)
        except BaseException as error:
            self._broken = error
            self.batch.close()
            for call in self.open():
                fail(call, error)
            self.receiver.end(error)

    def _send(self, store: Store) -> None:
        try:
            while batch := self.batch.take():
                posted = [each for each in batch if not each.call.cancelled()]
                try:
                    if posted:
                        self._submit(store, posted)
                except Exception as error:
                    for each in posted:
                        fail(each.call, error)
        finally:
            self.receiver.complete()

    def _submit(self, store: Store, posted: Sequence[Posted]) -> None:
        """Submit one batch as one sweep."""
        titles = list(dict.fromkeys(each.title for each in posted))
        title = "python:" + "+".join([*titles[:3], *(["…"] if len(titles) > 3 else [])])
        request = self._request([each.shown for each in posted], title)
        planned = planning.plan(self._context, request, project=self._project, index=store)
        sweep = planned.plan.run.id
        packed = pickles.packed(
            [(each.function, each.arguments) for each in posted],
            folder=self._project.folder,
            subfolder=self._project.subfolder if request.snapshot else "",
        )
        saved_calls.keep(store, sweep, calls.pack(packed))
        submitted = Submitted(sweep, {at: each.call for at, each in enumerate(posted)})
        try:
            _entry, warnings = enqueue(store, self._context, planned, by="the executor")
        except Exception as error:
            if store.get(sweep) is None:
                raise
            warnings = [f"sweep {sweep} is saved and will be submitted by the executor: {error}"]
        for text in warnings:
            log.warning("%s", text)
        self.receiver.add(submitted)
