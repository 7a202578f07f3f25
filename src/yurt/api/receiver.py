"""Brings home what calls came to: one look at the context for all of them, and one trip for the results."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from yurt.api import pickles
from yurt.api.errors import CallError
from yurt.api.future import Call
from yurt.backends.kinds import kind_of
from yurt.errors import YurtError
from yurt.lifecycle.refresh import archive
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.model import ids
from yurt.model.calls import CallResult
from yurt.model.run import FINAL
from yurt.store import Entry, Store
from yurt.verbs.cancel import cancel_runs
from yurt.verbs.steps import STEPS

if TYPE_CHECKING:
    from yurt.backends.base import Files

TRIES, LATE = 4, 2.0
"""How often a result is looked for that should be there, as a disk may show it late; seconds between, at most."""

TROUBLES = 10
"""How often in a row this machine may fail at looking: its disk may be full for a while, its index busy."""

log = logging.getLogger("yurt")


class Sent(msgspec.Struct):
    """Calls that went out as one sweep; those without a value yet, by their task."""

    sweep: str
    calls: dict[int, Call]
    tries: dict[int, int] = {}


class Receiver:
    """For any number of threads that add calls, and one that brings them home."""

    def __init__(self, context: str, kind: str, files: Files) -> None:
        self._context, self._files = context, files
        self._shortest, self._longest = kind_of(kind).pauses
        self._changed = threading.Condition()
        self._open: list[Sent] = []
        self._withdrawn: list[str] = []
        self._complete = self._left = False
        self._broken: BaseException | None = None
        self._said = ""

    def add(self, sent: Sent) -> None:
        """Calls that have gone out."""
        with self._changed:
            for at, call in sent.calls.items():
                call.run = ids.task(sent.sweep, at)
            self._open.append(sent)
            self._withdrawn += [call.run for call in sent.calls.values() if call.cancelled()]
            self._changed.notify_all()
        if self._broken is not None:
            self.end(self._broken)

    def withdraw(self, call: Call) -> None:
        """A call was cancelled: if it is out, its task is to be ended."""
        with self._changed:
            if call.run:
                self._withdrawn.append(call.run)
                self._changed.notify_all()

    def complete(self) -> None:
        """Nothing more is added."""
        with self._changed:
            self._complete = True
            self._changed.notify_all()

    def leave(self) -> list[str]:
        """Bring nothing more: what is out goes on alone. Returns its sweeps."""
        with self._changed:
            self._left = True
            self._changed.notify_all()
            return [sent.sweep for sent in self._open]

    def open(self) -> list[Call]:
        """Calls that are out and have no value yet."""
        with self._changed:
            return [call for sent in self._open for call in sent.calls.values()]

    def end(self, error: BaseException) -> None:
        """Nobody brings anything any more: all calls come to this error, and those that are still added."""
        with self._changed:
            self._complete, self._broken = True, error
            self._changed.notify_all()
        for call in self._empty():
            fail(call, error)

    def _empty(self) -> list[Call]:
        with self._changed:
            gone, self._open = self._open, []
        return [call for sent in gone for call in sent.calls.values()]

    def bring(self, store: Store) -> None:
        """Look, ever more seldom while nothing happens, until all calls have their value and no more will come."""
        pause, troubles = self._shortest, 0
        while self._something_is_out():
            news = False
            try:
                news = self._look(store)
                troubles = 0
            except YurtError as error:
                self._say(error.message)
            except (OSError, sqlite3.Error) as error:
                troubles += 1
                if troubles == TROUBLES:
                    raise
                self._say(f"could not look: {error}")
            pause = self._shortest if news else min(pause * 1.3, self._longest)
            if self._late():
                pause = min(pause, LATE)
            if pause > LATE:
                archive.catch_up(store, self._context, self._files)
            if self._pause(pause):
                pause = self._shortest
        for call in self._empty():
            sweep, text = call.run.partition(".")[0], f"{call.run} goes on, and nobody here waits for it any more"
            fail(call, CallError(text, code="call-detached", hint=f"yurt.runs(sweep='{sweep}')"))

    def _late(self) -> bool:
        """Whether a result should be there and is not."""
        with self._changed:
            return any(at in sent.calls for sent in self._open for at in sent.tries)

    def _something_is_out(self) -> bool:
        with self._changed:
            while not self._open and not self._withdrawn and not self._complete and not self._left:
                self._changed.wait(1.0)
            return bool(self._open or self._withdrawn) and not self._left

    def _pause(self, seconds: float) -> bool:
        """Wait for so long; True if something came up meanwhile."""
        with self._changed:
            before = len(self._open)
            return self._changed.wait_for(
                lambda: self._left or bool(self._withdrawn) or len(self._open) != before or not self._open, seconds
            )

    def _look(self, store: Store) -> bool:
        """One look; hands out the values of calls that have ended. Returns whether there were any."""
        self._end_withdrawn(store)
        refreshed = refresh_contexts(store, [self._context], keep=False, steps=STEPS)
        self._say("; ".join(refreshed.warnings))
        with self._changed:
            there = list(self._open)
        try:
            return sum(self._deliver(store, sent) for sent in there) > 0
        finally:
            with self._changed:
                self._open = [sent for sent in self._open if sent.calls]

    def _end_withdrawn(self, store: Store) -> None:
        """Have the tasks of cancelled calls ended; if no others of a sweep are open, the sweep."""
        with self._changed:
            withdrawn, self._withdrawn = set(self._withdrawn), []
            for sent in self._open:
                open_ones = {call.run for call in sent.calls.values() if not call.done() or call.run in withdrawn}
                if open_ones and open_ones <= withdrawn:
                    withdrawn = withdrawn - open_ones | {sent.sweep}
        if entries := store.several(sorted(withdrawn)):
            _done, error = cancel_runs(store, entries)
            self._say(error.message if error is not None else "")

    def _deliver(self, store: Store, sent: Sent) -> bool:
        whole = store.get(sent.sweep)
        if whole is None:
            for call in sent.calls.values():
                fail(call, CallError(f"{sent.sweep} is not known here any more", code="call-without-result"))
            sent.calls.clear()
            return True
        states = store.task_states(sent.sweep)
        for at, call in list(sent.calls.items()):
            if call.cancelled():
                del sent.calls[at]
            elif states.get(at) == "running":
                call.begin()
        over = whole.status.final
        ended = [at for at in sent.calls if (states.get(at, whole.status.state) if over else states.get(at)) in FINAL]
        entries = store.several([ids.task(sent.sweep, at) for at in ended])
        return self._hand_out(sent, [(entry.run.task or 0, entry) for entry in entries])

    def _hand_out(self, sent: Sent, entries: Sequence[tuple[int, Entry]]) -> bool:
        before = len(sent.calls)
        while entries:
            came = self._files.call_results([entry.run.folder for _at, entry in entries])
            for (at, entry), result in zip(entries, came, strict=False):
                if not self._may_come(sent, at, entry, result):
                    resolve(sent.calls.pop(at), entry, result)
            entries = entries[len(came) :] if came else []
        return len(sent.calls) < before

    def _may_come(self, sent: Sent, at: int, entry: Entry, result: CallResult) -> bool:
        """Whether a result that should be there may still come into sight."""
        if result.ok or result.kind or result.gone or entry.status.state != "completed":
            return False
        sent.tries[at] = sent.tries.get(at, 0) + 1
        return sent.tries[at] < TRIES

    def _say(self, text: str) -> None:
        if text != self._said:
            self._said = text
            if text:
                log.warning("%s", text)


def resolve(call: Call, entry: Entry, result: CallResult) -> None:
    """Give a call the value it came to, or the error."""
    try:
        value = pickles.value_of(entry, result)
    except BaseException as error:
        fail(call, error.with_traceback(None))  # where it was raised is told by its cause
    else:
        if call.begin():
            call.set_result(value)


def fail(call: Call, error: BaseException) -> None:
    """Give a call an error, unless it has come to something already."""
    if not call.done() and call.begin():
        call.set_exception(error)
