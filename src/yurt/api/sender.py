"""Carries calls to their context, many in one sweep, and their values home, in two threads of its own."""

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
from yurt.api.receiver import Receiver, Sent, fail
from yurt.lifecycle.outbox.enqueue import enqueue
from yurt.lifecycle.plan import plan as planning
from yurt.lifecycle.plan.request import Request
from yurt.model import calls
from yurt.model.context import Context
from yurt.sites import connect, folders
from yurt.sites.project import Project
from yurt.store import Store
from yurt.store import calls as kept_calls

log = logging.getLogger("yurt")


class Sender:
    """`request` says what is asked of the context for a batch: of its sets of parameters, and of its title."""

    def __init__(self, context: Context, request: Callable[[Sequence[dict[str, Any]], str], Request]) -> None:
        self._context, self._request, self._project = context, request, Project()
        self.batch = Batch()
        self.receiver = Receiver(context.name, context.type, connect.backend(context).files)
        self._alone = threading.RLock()
        self._threads: list[threading.Thread] = []
        self._broken: BaseException | None = None
        self._process = os.getpid()

    def post(self, posted: Posted) -> None:
        """RuntimeError: nothing is taken any more."""
        if self._elsewhere():
            raise CallError(
                "the executor belongs to the process that made it, and this is a fork of that",
                code="call-not-sent",
                hint="yurt.executor(…) in this process",
            )
        if self._broken is not None:
            raise CallError(f"the executor broke: {self._broken}", code="call-not-sent") from self._broken
        with self._alone:
            self.batch.post(posted)
            if not self._threads:
                self._threads = [
                    threading.Thread(target=self._guarded, args=(work,), name=f"yurt {name}")
                    for name, work in (("sends", self._send), ("brings", self.receiver.bring))
                ]
                for each in self._threads:
                    each.start()

    def close(self) -> None:
        """Nothing more is taken; what was posted is seen to its end."""
        if self._elsewhere():
            return
        with self._alone:
            self.batch.close()
            if not self._threads:
                self.receiver.complete()

    def open(self) -> list[Call]:
        """Calls without a value, wherever they are on their way. Those that were still here will not go out."""
        return [*self.batch.empty(), *self.batch.taken(), *self.receiver.open()]

    def sent(self) -> None:
        """Wait until what was posted has gone out."""
        for each in self._threads[:1]:
            each.join()

    def join(self) -> None:
        for each in self._threads:
            each.join()

    def _elsewhere(self) -> bool:
        """Whether this is a fork of the process that made it: the threads are not here."""
        return os.getpid() != self._process

    def _guarded(self, work: Callable[[Store], None]) -> None:
        """The life of a thread. Whatever happens, no call is left without an answer."""
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
                going = [each for each in batch if not each.call.cancelled()]
                try:
                    if going:
                        self._go(store, going)
                except Exception as error:
                    for each in going:
                        fail(each.call, error)
        finally:
            self.receiver.complete()

    def _go(self, store: Store, going: Sequence[Posted]) -> None:
        """One batch, as one sweep."""
        titles = list(dict.fromkeys(each.title for each in going))
        title = "python:" + "+".join([*titles[:3], *(["…"] if len(titles) > 3 else [])])
        request = self._request([each.shown for each in going], title)
        planned = planning.plan(self._context, request, project=self._project, index=store)
        sweep = planned.plan.run.id
        packed = pickles.packed(
            [(each.function, each.arguments) for each in going],
            folder=self._project.folder,
            subfolder=self._project.subfolder if request.snapshot else "",
        )
        kept_calls.keep(store, sweep, calls.pack(packed))
        sent = Sent(sweep, {at: each.call for at, each in enumerate(going)})
        try:
            _entry, warnings = enqueue(store, self._context, planned, later="goes out")
        except Exception as error:
            if store.get(sweep) is None:
                raise
            warnings = [f"{sweep} goes out later: {error}"]
        for text in warnings:
            log.warning("%s", text)
        self.receiver.add(sent)
