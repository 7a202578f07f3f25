"""One slot of this machine: takes the tasks of a sweep one after another, and runs their calls in one process.

It does for each task what job.sh does for one: the gate, the start, the limit, signals, the end. See records.py.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections import deque
from typing import Any

from yurt.backends.local import gate, waiter
from yurt.backends.local.staying import records
from yurt.backends.local.staying.running import Running, Sweep
from yurt.backends.local.staying.workdir import Pattern
from yurt.backends.local.staying.worker import Worker

SETUP_FAILED = 78
"""The exit code of job.sh if the environment could not be set up."""

STOPPED = 143

NAMING = 0.5
"""Seconds after which the ticket of a runner names another task."""

LATE = 10.0
"""Seconds within which a signal may arrive that was meant for an earlier task."""


class Runner:
    """Runs tasks that the dispatcher hands out over a socket."""

    def __init__(self, sweep: Sweep, dispatcher: socket.socket) -> None:
        self._sweep, self._dispatcher = sweep, dispatcher
        self._own = f"{os.uname().nodename}.{os.getpid()}"
        self._common = records.Common(sweep.folder, sweep.nonce, self._own)
        self._ticket: waiter.Ticket = {}
        self._name = ""
        self._worker: Worker | None = None
        self._made = 0
        self._first: dict[str, str] = {}
        self._pattern: Pattern | None = None
        self._untidy = ""
        self._spare = records.Spare()
        self._named = 0.0
        self._earlier: deque[tuple[float, str]] = deque(maxlen=1000)
        self._signals: list[int] = []
        self._wakes, wake = os.pipe()
        os.set_blocking(self._wakes, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for each in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(each, lambda number, _frame: self._signals.append(number))
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def work(self) -> int:
        """Run tasks until there are no more, or the dispatcher is gone. Returns an exit code."""
        try:
            while True:
                number = self._next()
                if number is None:
                    return 0
                if not self._has_slot(number):
                    continue
                self._run(number)
        except records.GivenUpError:
            return 75
        finally:
            self._end_worker()
            self._spare.drop()
            self._common.remove()
            if self._name:
                with contextlib.suppress(OSError):
                    os.unlink(f"{self._sweep.slots}/{self._name}")

    def _next(self) -> int | None:
        try:
            self._dispatcher.sendall(b"next\n")
            said = self._dispatcher.recv(64)
        except OSError:
            return None
        return int(said) if said else None

    def _has_slot(self, number: int) -> bool:
        """Take a task, and wait for a slot if others wait for one. False: the task was cancelled while it waited.

        The ticket names a task for display; it may be some moments behind.
        """
        sweep, run, now = self._sweep, f"{self._sweep.id}.{number}", time.monotonic()
        if self._name and not self._others():
            self._tell(number)
            if now - self._named >= NAMING:
                self._ticket["run"], self._named = run, now
                with contextlib.suppress(OSError):
                    waiter.write(sweep.slots, self._name, self._ticket)
            return True
        last, self._name, self._named = self._name, waiter.name_of(run, sweep.nonce), now
        self._ticket = waiter.new_ticket(run, os.getpid(), sweep.cpus, 0, follows=False) | {"calls": True}
        records.insist(lambda: waiter.write(sweep.slots, self._name, self._ticket))
        if last:
            os.unlink(f"{sweep.slots}/{last}")
        self._tell(number)
        while ahead := waiter.claim(sweep.slots, self._name, self._ticket):
            time.sleep(min(0.2 * ahead, 3))
            if self._is_cancelled(self._folder(number)):
                return False
        return True

    def _others(self) -> bool:
        """Whether runs other than this sweep have tickets: one of them may be waiting for the slot."""
        mark = f"-{self._sweep.id}."
        return any(mark not in name for name in os.listdir(self._sweep.slots) if not name.startswith("."))

    def _tell(self, number: int) -> None:
        with contextlib.suppress(OSError):
            self._dispatcher.sendall(b"%d\n" % number)

    def _folder(self, number: int) -> str:
        return f"{self._sweep.folder}/{records.TASKS}/{number}"

    def _is_cancelled(self, folder: str) -> bool:
        return any(os.path.exists(f"{each}/{records.CANCEL}") for each in (folder, self._sweep.folder))

    def _run(self, number: int) -> None:
        folder = self._folder(number)
        if gate.read_written(f"{folder}/{records.EXIT}"):
            return
        params, variables = records.parameters(self._sweep.folder, number)
        records.insist(lambda: records.make_folder(folder, params))
        if self._common.put(records.WINNER, self._common.winner, folder) != self._common.winner:
            return  # cancelled, or another submission has it
        if gate.read_written(f"{folder}/{records.EXIT}"):
            records.fold(folder)
            return
        if self._common.put(records.START, self._common.start, folder) != self._common.start:
            return
        os.utime(f"{folder}/{records.START}")  # its time is that of the start
        if gate.read_written(f"{folder}/{records.EXIT}"):
            return
        call = Running(folder, self._own, self._sweep, self._is_cancelled, self._cancelled_earlier)
        self._drop_late_signals()
        if self._is_cancelled(folder):
            call.stop("stopped")
            self._finish(call, number, STOPPED)
        else:
            self._finish(call, number, self._make_call(call, number, variables))
        self._earlier.append((time.monotonic(), folder))

    def _make_call(self, call: Running, number: int, variables: dict[str, str]) -> int:
        """Have the process make the call, in a new process if there is none, and return its exit status."""
        if self._worker is not None and self._sweep.calls and self._made >= self._sweep.calls:
            self._end_worker()
        if self._worker is not None:
            call.began(self._worker, self._pattern)
            if not self._worker.give(self._message(call.folder, number, variables)):
                self._end_worker()  # it was killed between two calls
        if self._worker is None:
            self._start(call, number, variables)
        assert self._worker is not None
        self._made += 1
        status = call.wait(self._worker, self._signals, self._wakes)
        self._pattern = call.pattern
        if status is None:
            return call.code
        self._end_worker()
        return status

    def _message(self, folder: str, number: int, variables: dict[str, str]) -> dict[str, Any]:
        assert self._pattern is not None and self._worker is not None
        pattern, work = self._pattern, f"{folder}/{records.WORK}"
        records.insist(lambda: pattern.make(folder))
        for name in (records.OUTPUTS, records.CHECKPOINTS):
            records.insist(lambda name=name: self._spare.give(folder, name))  # type: ignore[misc]
        below = f"{work}/{self._sweep.subfolder}" if self._sweep.subfolder else work
        return {
            "number": number,
            "folder": folder,
            "was": self._folder(self._worker.first),
            "cwd": self._sweep.place or below,
            "run": f"{self._sweep.id}.{number}",
            "set": variables,
            "unset": [name for name in self._first if name not in variables],
        }

    def _start(self, call: Running, number: int, variables: dict[str, str]) -> None:
        sweep, folder = self._sweep, call.folder
        flags = os.O_WRONLY | os.O_APPEND
        logs = (
            gate.private(f"{folder}/{records.OUT_LOG}", flags),
            gate.private(f"{folder}/{records.ERR_LOG}", flags),
        )
        # As job.sh does it: the environment, the working directory, and then the program for calls.
        try:
            worker = Worker(sweep.folder, folder, number, nonce=sweep.nonce, mask=sweep.mask, logs=logs)
        finally:
            for each in logs:
                os.close(each)
        self._worker, self._made, self._first, self._untidy = worker, 0, variables, folder
        call.began(worker, None)

    def _finish(self, call: Running, number: int, status: int) -> None:
        """Record the end of a task, then remove what nobody needs after it."""
        folder, pattern = call.folder, call.pattern
        if pattern is None and os.path.isdir(f"{folder}/{records.WORK}"):
            pattern = Pattern(folder, self._sweep.code)  # nothing of the user's has started
        fields = call.ending(status)
        if status == SETUP_FAILED and (why := gate.read_written(f"{folder}/{records.WHY}")):
            fields["why"] = "".join(each if " " <= each <= "~" else " " for each in why.replace('"', "'"))[:300]
        fields |= call.used()
        if pattern is not None and not call.stopped:
            fields["kb"], fields["files"] = pattern.count(folder)
        records.write_end(folder, fields, self._own)
        # The first working directory of a process stays as long as the process, which imports from it.
        stays = self._worker is not None and (self._worker.first == number or (pattern and pattern.keep(folder)))
        if pattern is not None and not stays:
            pattern.tidy(folder)
        for name in (records.OUTPUTS, records.CHECKPOINTS):
            self._spare.keep(folder, name)
        records.fold(folder)

    def _end_worker(self) -> None:
        """End the process for calls. Its first working directory, from which it imports, is tidied only then."""
        if self._worker is not None:
            self._worker.end()
            if self._pattern is not None and gate.read_written(f"{self._untidy}/{records.EXIT}"):
                self._pattern.tidy(self._untidy)
        if self._pattern is not None:
            self._pattern.end()
        self._worker = self._pattern = None

    def _drop_late_signals(self) -> None:
        """Drop a signal that was meant for an earlier task, which ended when it was cancelled."""
        if self._signals and self._cancelled_earlier():
            self._signals.clear()

    def _cancelled_earlier(self) -> bool:
        since = time.monotonic() - LATE
        return any(at > since and os.path.exists(f"{each}/{records.CANCEL}") for at, each in self._earlier)
