"""Fetches the results of calls: one query of the context for all of them, and one transfer for the results."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from yurt.api import pickles
from yurt.api.errors import BrokenExecutorError, CallError
from yurt.api.future import Call, is_withdrawn, settle
from yurt.backends.kinds import kind_of
from yurt.errors import YurtError
from yurt.lifecycle.cancel import cancel_runs
from yurt.lifecycle.refresh import archive, poll_interval
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.steps import STEPS
from yurt.model import ids
from yurt.model.calls import CallResult
from yurt.model.run import FINAL
from yurt.store import Entry, Store
from yurt.store.connection import INDEX_CODES

if TYPE_CHECKING:
    from yurt.backends.base import Files

TRIES, RETRY_DELAY = 4, 2.0
"""How often to look for the result of a completed call, since a file system may show it late; most seconds between."""

MAX_FAILURES = 10
"""Local failures in a row before the receiver gives up: the disk may be full, or the index busy, for a while."""

POLL_SHARE = 3
"""On this machine: how many times as long as a poll the pause after it is, at least."""

log = logging.getLogger("yurt")


class Submitted(msgspec.Struct):
    """A submitted sweep, and those of its calls that have no result yet, by task number."""

    sweep: str
    calls: dict[int, Call]
    tries: dict[int, int] = {}


class Receiver:
    """Holds submitted calls and resolves them. Any number of threads may add calls; one runs `receive`.

    If the initializer failed in a task, it calls `broken` with the error.

    No thread waits for the lock of a future while it holds the lock of the receiver, because Ctrl-C in
    `concurrent.futures.wait` may leave a future locked.
    """

    def __init__(self, context: str, kind: str, files: Files, broken: Callable[[BrokenExecutorError], None]) -> None:
        self._context, self._files, self._on_broken = context, files, broken
        self._shortest, self._longest = poll_interval.bounds(kind)
        self._share = POLL_SHARE if kind_of(kind).here else 0
        self._changed = threading.Condition()
        self._open: list[Submitted] = []
        self._withdrawn: list[str] = []
        self._cancelling = False
        self._complete = self._left = False
        self._broken: BaseException | None = None
        self._initializer_error: BrokenExecutorError | None = None
        self._last_warning = ""

    def add(self, sent: Submitted) -> None:
        """Add the calls of a submitted sweep."""
        with self._changed:
            for at, call in sent.calls.items():
                call.task = ids.task(sent.sweep, at)
            self._open.append(sent)
            self._withdrawn += [call.task for call in sent.calls.values() if is_withdrawn(call)]
            self._changed.notify_all()
        if self._broken is not None:
            self.end(self._broken)
        elif self._left:
            self.leave()

    def withdraw(self, call: Call) -> None:
        """Have the task of a cancelled call cancelled, if the call is submitted."""
        with self._changed:
            if call.task:
                self._withdrawn.append(call.task)
                self._changed.notify_all()

    def complete(self) -> None:
        """Declare that no more calls will be added."""
        with self._changed:
            self._complete = True
            self._changed.notify_all()

    def leave(self) -> dict[str, int]:
        """Stop fetching results; submitted calls continue. Returns how many of each sweep's calls have no result."""
        with self._changed:
            self._left = True
            removed, self._open = self._open, []
            self._changed.notify_all()
        found: dict[str, int] = {}
        for sent in removed:
            for call in [call for call in list(sent.calls.values()) if not call.done()]:
                found[sent.sweep] = found.get(sent.sweep, 0) + 1
                text = f"the executor stopped waiting for {call.task}, which has not finished"
                hint = f"get its result later with `yurt.runs(sweep={sent.sweep!r})[NUMBER].result()`"
                settle(call, error=CallError(text, code="call-detached", hint=hint))
        return found

    def withdrawn(self) -> bool:
        """Whether there are cancelled calls whose tasks are not cancelled yet."""
        with self._changed:
            return bool(self._withdrawn) or self._cancelling

    def open(self) -> list[Call]:
        """Return submitted calls that have no result yet."""
        with self._changed:
            return [call for sent in self._open for call in list(sent.calls.values())]

    def end(self, error: BaseException) -> None:
        """Stop with an error: all open calls get it, and so do calls added later."""
        with self._changed:
            self._complete, self._broken = True, error
            self._changed.notify_all()
        for call in self._empty():
            settle(call, error=error)

    def _empty(self) -> list[Call]:
        with self._changed:
            removed, self._open = self._open, []
        return [call for sent in removed for call in list(sent.calls.values())]

    def receive(self, store: Store) -> None:
        """Poll the context until all calls have a result and no more will be added; slower while nothing changes."""
        pause, failures = self._shortest, 0
        while self._has_open_calls():
            news, began = False, time.monotonic()
            try:
                news = self._poll(store)
                failures = 0
            except (YurtError, OSError, sqlite3.Error) as error:
                text = error.text if isinstance(error, YurtError) else f"{error}"
                of_site = isinstance(error, YurtError) and error.code not in INDEX_CODES
                failures += not of_site
                if failures == MAX_FAILURES:
                    raise
                self._warn(text if of_site else f"cannot refresh the calls on {self._context}: {text}")
            pause = self._shortest if news else min(pause * poll_interval.GROWTH, self._longest)
            # On this machine, calls and polls use the same cores.
            pause = max(pause, min(self._share * (time.monotonic() - began), self._longest))
            if self._result_is_late():
                pause = min(pause, RETRY_DELAY)
            if pause > RETRY_DELAY:
                archive.catch_up(store, self._context, self._files)
            if self._pause(pause):
                pause = self._shortest
        if self.withdrawn():
            self._cancel_withdrawn(store)

    def _result_is_late(self) -> bool:
        """Whether a completed call has no result file yet."""
        with self._changed:
            return any(at in sent.calls for sent in self._open for at in sent.tries)

    def _has_open_calls(self) -> bool:
        with self._changed:
            while not self._open and not self._withdrawn and not self._complete and not self._left:
                self._changed.wait(1.0)
            return bool(self._open or self._withdrawn) and not self._left

    def _pause(self, seconds: float) -> bool:
        """Wait for that long; return True early if there are new or cancelled calls."""
        with self._changed:
            before = len(self._open)
            return self._changed.wait_for(
                lambda: self._left or bool(self._withdrawn) or len(self._open) != before or not self._open, seconds
            )

    def _poll(self, store: Store) -> bool:
        """Refresh once and resolve the calls that have finished. Returns whether there were any."""
        self._cancel_withdrawn(store)
        refreshed = refresh_contexts(store, [self._context], keep=False, steps=STEPS)
        self._warn("; ".join(refreshed.warnings))
        with self._changed:
            submitted = list(self._open)
        try:
            return sum(self._resolve_finished(store, sent) for sent in submitted) > 0
        finally:
            with self._changed:
                self._open = [sent for sent in self._open if sent.calls]
            if self._initializer_error is not None:  # after all available results, which are valid
                self._on_broken(self._initializer_error)

    def _cancel_withdrawn(self, store: Store) -> None:
        """Cancel the tasks of cancelled calls; the whole sweep if it has no other open calls."""
        with self._changed:
            withdrawn, self._withdrawn = set(self._withdrawn), []
            submitted = list(self._open) if withdrawn else []
            self._cancelling = bool(withdrawn)
        try:
            self._cancel_tasks(store, withdrawn, submitted)
        finally:
            self._cancelling = False

    def _cancel_tasks(self, store: Store, withdrawn: set[str], submitted: Sequence[Submitted]) -> None:
        for sent in submitted:
            calls = list(sent.calls.values())
            open_ones = {call.task for call in calls if not call.done() or call.task in withdrawn}
            if open_ones and open_ones <= withdrawn:
                withdrawn = withdrawn - open_ones | {sent.sweep}
        if entries := store.several(sorted(withdrawn)):
            _done, error = cancel_runs(store, entries)
            self._warn(error.text if error is not None else "")

    def _resolve_finished(self, store: Store, sent: Submitted) -> bool:
        whole = store.get(sent.sweep)
        if whole is None:
            for call in sent.calls.values():
                text = f"sweep {sent.sweep} is no longer in the run index of this machine"
                hint = f"import it with `yurt import {self._context}`"
                settle(call, error=CallError(text, code="call-without-result", hint=hint))
            sent.calls.clear()
            return True
        states = store.task_states(sent.sweep)
        for at, call in list(sent.calls.items()):
            if call.done():
                del sent.calls[at]
            elif states.get(at) == "running":
                call.begin()
        rest = whole.status.state if whole.status.final else None
        finished = [at for at in sent.calls if states.get(at, rest) in FINAL]
        entries = store.several([ids.task(sent.sweep, at) for at in finished])
        return self._fetch_results(sent, [(entry.run.task or 0, entry) for entry in entries])

    def _fetch_results(self, sent: Submitted, entries: Sequence[tuple[int, Entry]]) -> bool:
        before = len(sent.calls)
        while entries:
            results = self._files.call_results([entry.run.folder for _at, entry in entries])
            count = len(results)
            results.reverse()
            for at, entry in entries[:count]:
                if self._may_still_appear(sent, at, entry, results[-1]):
                    results.pop()
                else:
                    error = resolve(sent.calls.pop(at), entry, results.pop())
                    if isinstance(error, BrokenExecutorError):
                        self._initializer_error = error
                    del error  # it may hold large data
            entries = entries[count:] if count else []
        return len(sent.calls) < before

    def _may_still_appear(self, sent: Submitted, at: int, entry: Entry, result: CallResult) -> bool:
        """Whether to look again for a missing result: a shared disk may show an earlier state for some time."""
        missing = not result.ok and not result.kind and not result.gone and entry.status.state == "completed"
        if not missing and result.kind != "initializing":
            return False
        sent.tries[at] = sent.tries.get(at, 0) + 1
        return sent.tries[at] < TRIES

    def _warn(self, text: str) -> None:
        if text != self._last_warning:
            self._last_warning = text
            if text:
                log.warning("%s", text)


def resolve(call: Call, entry: Entry, result: CallResult) -> BaseException | None:
    """Set the result of a call, or its exception. Returns the exception."""
    try:
        value = pickles.value_of(entry, result)
    except BaseException as error:
        _as_text(error.__cause__)
        settle(call, error=error.with_traceback(None))  # its cause has the remote traceback
        return error
    del result  # the pickle may be large
    settle(call, value)
    return None


def _as_text(error: BaseException | None) -> None:
    """Replace the traceback of an error in unpickling by its text: its frames refer to the pickle and to all calls."""
    if error is not None and error.__traceback__ is not None:
        lines = traceback.format_tb(error.__traceback__.tb_next)
        error.with_traceback(None)
        if lines:
            error.add_note("".join(lines).rstrip())
