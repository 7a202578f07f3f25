"""Submits calls to their context, many in one sweep, and fetches their results, in two threads of its own."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures._base import LOGGER
from contextlib import suppress
from typing import Any

from yurt.api import leaving, pickles, pythons
from yurt.api.batch import Batch, Posted
from yurt.api.callbacks import Callbacks
from yurt.api.errors import BrokenExecutorError, CallError
from yurt.api.future import PART, Call, drop, fail, is_withdrawn, settle
from yurt.api.receiver import Receiver, Submitted
from yurt.backends.kinds import kind_of
from yurt.config import facts as recorded_facts
from yurt.contexts import connect, folders
from yurt.contexts.project import Project
from yurt.lifecycle.outbox.enqueue import enqueue
from yurt.lifecycle.plan import plan as planning
from yurt.lifecycle.plan.request import Planned, Request
from yurt.model import calls
from yurt.model.context import Context
from yurt.store import Store
from yurt.store import calls as saved_calls

GRACE = 1.0
"""Seconds between the end of an iterator of `map` and the cancellation of its other calls."""

LEAVE_SECONDS = 15.0
"""How long Ctrl-C waits for a submission, and for a cancellation, that has begun."""

log = logging.getLogger("yurt")


class Sender:
    """The connection of one executor to its context. `request` makes the request of a batch from its sets and title."""

    def __init__(self, context: Context, request: Callable[[Sequence[dict[str, Any]], str], Request]) -> None:
        self._context, self._request, self._project = context, request, Project()
        self.batch, self.callbacks = Batch(here=kind_of(context.type).here), Callbacks()
        self.receiver = Receiver(context.name, context.type, connect.backend(context).files, self.fail)
        self._lock = threading.RLock()
        self._threads: list[threading.Thread] = []
        self._broken: BaseException | None = None
        self._process = os.getpid()
        self._submitting = ""
        self._abandoned: deque[Call] = deque()
        self._left = False
        self._told: set[str] = set()

    def post(self, posted: Posted) -> None:
        """Queue a call. BrokenExecutorError: the executor failed. CallError: this process is a fork.

        RuntimeError: the executor is shut down, or the interpreter exits.
        """
        if not self.own():
            raise CallError(
                "the executor belongs to the parent process and cannot be used after a fork",
                code="call-not-sent",
                hint="create an executor in this process with `yurt.executor(…)`",
            )
        with leaving.accepting(self), self._lock:
            if self._broken is not None:
                raise BrokenExecutorError(
                    f"the executor failed: {self._broken}",
                    code="call-not-sent",
                    hint="create a new executor with `yurt.executor(…)`",
                ) from self._broken
            self.batch.post(posted)
            if not self._threads:
                self._threads = [
                    threading.Thread(target=self._guarded, args=(work,), name=f"yurt {name}", daemon=True)
                    for name, work in (("sender", self._send), ("receiver", self.receiver.receive))
                ]
                for each in self._threads:
                    each.start()

    @property
    def broken(self) -> bool:
        """Whether the executor has failed."""
        return self._broken is not None

    def fail(self, error: BrokenExecutorError) -> None:
        """Accept no more calls, because the initializer failed; calls that are not running get an error too."""
        with self._lock:
            if self._broken is not None:
                return
            self._broken = error
        LOGGER.critical("Exception in initializer:\n%s", error.__cause__ or error.message)
        for call in self._open():
            own = BrokenExecutorError(f"the call was cancelled: {error.message}", code=error.code, hint=error.hint)
            own.task, own.__cause__ = call.task, error.__cause__
            fail(call, own)

    def close(self) -> None:
        """Accept no more calls. Those that are queued are submitted, and their results are fetched."""
        if not self.own():
            return
        with self._lock:
            self.batch.close()
            if not self._threads:
                self.receiver.complete()

    def finish(self) -> None:
        """Close, and cancel abandoned calls now."""
        self.close()
        if self.own():
            self._drop_abandoned()

    def withdraw(self, call: Call) -> None:
        """Have the task of a cancelled call cancelled. Does nothing in a fork, where a lock may be held for ever."""
        if self.own():
            self.receiver.withdraw(call)

    def cancel_all(self) -> None:
        """Cancel all calls that are not running yet."""
        if self.own():
            for call in self._open():
                drop(call)

    def abandon(self, calls: list[Call]) -> None:
        """Cancel the calls of a `map` whose iterator was dropped, shortly after.

        If it was dropped because of Ctrl-C, `leave` follows at once, and the calls continue. Takes no lock: the garbage
        collector may drop an iterator in any thread.
        """
        if self._left or not self.own():
            return
        self._abandoned.extend(calls)
        timer = threading.Timer(GRACE, self._drop_abandoned)
        timer.daemon = True
        try:
            timer.start()
        except RuntimeError:  # late in the exit of the interpreter
            self._drop_abandoned()

    def _drop_abandoned(self) -> None:
        while True:
            try:
                call = self._abandoned.popleft()
            except IndexError:
                return
            drop(call)

    def leave(self) -> list[str]:
        """Stop submitting calls and waiting for them, after Ctrl-C. Returns what happens to them, as lines of text.

        Calls that are submitted, or being submitted, continue; others are cancelled. Waits a short time for requests to
        the context that have begun; another Ctrl-C ends that wait.
        """
        if self._left or not self.own():
            return []
        self._left = True
        self._abandoned.clear()
        with self._lock:
            self.batch.close()
            unsent = self.batch.empty()
            if not self._submitting:
                unsent += [call for call in self.batch.taken() if not call.task]
            unsent = [call for call in unsent if not call.done() and drop(call)]
        with suppress(KeyboardInterrupt):
            self._wait_for(self._threads[:1])
        lines = left_lines(self.receiver.leave(), self._submitting, len(unsent), self._context.name)
        with suppress(KeyboardInterrupt):
            if self.receiver.withdrawn():
                self._wait_for(self._threads)
            self.callbacks.join(GRACE)
        return lines

    def _wait_for(self, threads: Sequence[threading.Thread]) -> None:
        """Wait for requests to the context, but not for long."""
        deadline = time.monotonic() + LEAVE_SECONDS
        for each in threads:
            if each.is_alive():
                each.join(GRACE)
            if each.is_alive():
                text = f"yurt: waiting up to {LEAVE_SECONDS:.0f} s for {self._context.name}; Ctrl-C stops the wait"
                print(text, file=sys.stderr)
                each.join(max(0.0, deadline - time.monotonic()))

    def join(self) -> None:
        """Wait until all calls have finished and their callbacks have run."""
        if not self.own():
            return
        for each in self._threads:
            while each.is_alive():  # in parts: the interpreter may overlook Ctrl-C at the beginning of a wait
                each.join(PART)
        self.callbacks.join()

    def own(self) -> bool:
        """Whether this process created the executor; a fork of it has none of its threads."""
        return os.getpid() == self._process

    def _open(self) -> list[Call]:
        """Return all calls without a result. Removes those still queued: they will not be submitted."""
        return [*self.batch.empty(), *self.batch.taken(), *self.receiver.open()]

    def _guarded(self, work: Callable[[Store], None]) -> None:
        """Run the work of a thread. If it fails, every open call gets the error."""
        try:
            with folders.store() as store:
                work(store)
        except BaseException as error:
            self._broken = error
            self.batch.close()
            for call in self._open():
                settle(call, error=error)
            self.receiver.end(error)

    def _send(self, store: Store) -> None:
        try:
            while self._send_batch(store):
                pass
        finally:
            self.receiver.complete()

    def _send_batch(self, store: Store) -> bool:
        """Submit the next batch. Returns False if there are no more. Refers to no call while it waits for one."""
        batch = self.batch.take()
        posted = [each for each in batch if not each.call.done()]
        try:
            if posted:
                self._submit(store, posted)
        except Exception as error:
            for each in posted:
                settle(each.call, error=error)
        return bool(batch)

    def _submit(self, store: Store, posted: Sequence[Posted]) -> None:
        """Submit one batch as one sweep."""
        titles = list(dict.fromkeys(each.title for each in posted))
        title = "python:" + "+".join([*titles[:3], *(["…"] if len(titles) > 3 else [])])
        request = self._request([each.shown for each in posted], title)
        planned = planning.plan(self._context, request, project=self._project, index=store)
        if request.calls_python:
            pythons.check(self._context.name, planned.plan, posted, recorded_facts.load(self._context))
        sweep = planned.plan.run.id
        with self._lock:
            if all(is_withdrawn(each.call) for each in posted):
                return
            self._submitting = sweep
        try:
            packed = pickles.packed(
                [(each.function, each.arguments) for each in posted],
                folder=self._project.folder,
                subfolder=self._project.subfolder if request.snapshot else "",
            )
            saved_calls.keep(store, sweep, calls.pack(packed))
            self._enqueue(store, planned)
            self.receiver.add(Submitted(sweep, {at: each.call for at, each in enumerate(posted)}))
        finally:
            self._submitting = ""

    def _enqueue(self, store: Store, planned: Planned) -> None:
        building = ""
        try:
            entry, warnings = enqueue(store, self._context, planned, by="the executor")
            if entry.run.home_sync:
                from yurt.lifecycle.syncing import sync_first

                (entry,), notes = sync_first(store, [entry])
                warnings += notes
            if entry.status.building and entry.run.env is not None:
                building = f"building the environment of {entry.run.env.title} on {self._context.name}, once"
        except Exception as error:
            sweep = planned.plan.run.id
            if store.get(sweep) is None:
                raise
            warnings = [f"sweep {sweep} is saved and will be submitted by the executor: {error}"]
        for text in (*warnings, building):
            if text and text not in self._told:  # each sweep of the executor has the same choice to tell
                self._told.add(text)
                log.warning("%s", text)


def left_lines(open_calls: Mapping[str, int], submitting: str, unsent: int, context: str) -> list[str]:
    """Return lines that say what happens to the calls of an executor that was left."""
    lines = []
    counts = {**open_calls, **({submitting: 0} if submitting else {})}
    with folders.store() as store:
        entries = store.several(list(counts))
    for entry in entries:
        sweep, count = entry.run.id, counts[entry.run.id]
        if entry.status.final:
            lines.append(f"yurt: sweep {sweep} has finished on {context}")
        elif entry.status.state in ("waiting", "submitting"):
            lines.append(f"yurt: sweep {sweep} is saved, and the next yurt command submits it if necessary")
        else:
            lines.append(f"yurt: sweep {sweep} continues on {context} ({count} unfinished call{'s' * (count != 1)})")
        cancel = "" if entry.status.final else f", or cancel it with `yurt cancel {sweep}`"
        lines.append(f"  hint: get its results later with `yurt.runs(sweep={sweep!r})`{cancel}")
    if unsent:
        lines.append(f"yurt: {unsent} call{' was' if unsent == 1 else 's were'} not submitted")
    return lines
