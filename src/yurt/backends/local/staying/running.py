"""One call while it runs: its signals, its time limit, what it uses, and how it ends. As job.sh for one command."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from yurt.backends.local.staying import records
from yurt.backends.local.staying.workdir import Pattern
from yurt.backends.local.staying.worker import Worker

SAMPLES = (0.5, 1.0, 2.0, 4.0, 10.0)
"""Seconds until the first samples of the memory of a call, each after the one before; then the last of them."""

KILLED = (130, 137, 143)
"""Exit statuses after INT, KILL and TERM, one of which may have reached the call but not this process."""


class Sweep(NamedTuple):
    """What all tasks have in common."""

    id: str
    folder: str
    nonce: str
    slots: str
    cpus: int
    mask: int
    limit: int | None
    grace: int
    code: str
    subfolder: str
    place: str
    calls: int
    """The most calls that one process makes; 0 if there is no limit."""


class Running:
    """One call. `is_cancelled`: whether the user has cancelled the task in a folder; `late`: or an earlier task."""

    def __init__(
        self, folder: str, own: str, sweep: Sweep, is_cancelled: Callable[[str], bool], late: Callable[[], bool]
    ) -> None:
        self._late = late
        self.folder, self.code, self.stopped = folder, 0, ""
        self.pattern: Pattern | None = None
        self._own, self._sweep, self._is_cancelled = own, sweep, is_cancelled
        self._since, self._at = time.monotonic(), int(time.time())
        self._kill_at: float | None = None
        self._spent_before = self._spent = 0.0
        self._peak = self._sampled = self._largest = 0
        self._forgot = False
        self._sample_at = 0.0

    def began(self, worker: Worker, pattern: Pattern | None) -> None:
        """Note that a process is about to make the call. `pattern`: its working directory, if it is known."""
        self.pattern = pattern
        self._since, self._at = time.monotonic(), int(time.time())
        self._spent_before = worker.spent() or 0.0
        self._forgot = worker.forget_peak()
        self._spent = self._spent_before
        self._sample_at = self._since + SAMPLES[0]
        text = f"{worker.pid} {worker.born}\n".encode()
        with contextlib.suppress(OSError):
            records.write(f"{self.folder}/{records.CHILD}", text)

    def wait(self, worker: Worker, signals: list[int], wakes: int) -> int | None:
        """Return once the call has ended: the status of its process, or None if that can take another call."""
        limit = self._since + self._sweep.limit if self._sweep.limit else None
        while True:
            while signals:
                self._pass_on(worker, signals.pop(0))
            now = time.monotonic()
            if limit is not None and now >= limit:
                self._terminate(worker, "timeout")
                limit = None
            if self._kill_at is not None and now >= self._kill_at:
                worker.signal(signal.SIGKILL)
                self._kill_at = None
            if now >= self._sample_at:
                self._sample(worker, now)
            line = worker.hear()
            if line == "starts":
                self.pattern = Pattern(self.folder, self._sweep.code)
                worker.go()
            elif line.startswith("ended "):
                self.code = int(line[6:])
                self._spent = worker.spent() or self._spent
                if self._forgot:
                    self._largest, without_files = worker.peak_mb()
                    self._peak = max(self._peak, without_files)
                return None if not self.stopped else self._after_stop(worker)
            status = worker.status()
            if status is not None:
                return status
            if not line:
                due = min(each for each in (limit, self._kill_at, self._sample_at) if each is not None)
                select.select([worker.channel.fileno(), wakes], [], [], max(0.0, due - time.monotonic()))
                with contextlib.suppress(OSError):
                    os.read(wakes, 512)

    def _after_stop(self, worker: Worker) -> int:
        """End a process whose call has returned after it was signalled to stop: the signal may still arrive."""
        worker.end()
        return self.code

    def _pass_on(self, worker: Worker, number: int) -> None:
        if number == signal.SIGTERM:
            if self._is_cancelled(self.folder) or not self._late():
                self._terminate(worker, "stopped")
        else:
            worker.signal(number)
            if number == signal.SIGINT:
                self.stop("stopped")

    def _terminate(self, worker: Worker, why: str) -> None:
        """Signal the call to stop; it is killed after the grace period."""
        worker.signal(signal.SIGTERM)
        self._kill_at = time.monotonic() + self._sweep.grace
        self.stop(why)

    def stop(self, why: str) -> None:
        """Record why the call stops."""
        why = records.CANCELLED if self._is_cancelled(self.folder) else why
        if not self.stopped or why == records.CANCELLED:
            self.stopped = why
            with contextlib.suppress(records.GivenUpError):
                records.write_once(f"{self.folder}/{records.STOPPED}", why, self._own, 3)

    def _sample(self, worker: Worker, now: float) -> None:
        """Measure what the call uses, and record it, as sampler.sh does."""
        self._spent = worker.spent() or self._spent
        memory = worker.memory_mb()
        self._peak = max(self._peak, memory)
        self._sampled += 1
        self._sample_at = now + SAMPLES[min(self._sampled, len(SAMPLES) - 1)]
        seconds, spent = now - self._since, self._spent - self._spent_before
        head = "= 1 1 - -\n" if self._sampled == 1 else ""
        with contextlib.suppress(OSError), open(f"{self.folder}/{records.USAGE}", "a") as file:
            file.write(f"{head}1 {seconds:.1f} {spent:.2f} 0.00 {memory} {self._peak} - -\n")

    def used(self) -> dict[str, Any]:
        """Return a field for exit.json of what the call used."""
        seconds = time.monotonic() - self._since
        if not os.path.isdir("/proc/self"):
            return {}
        spent = max(0.0, self._spent - self._spent_before)
        usage: dict[str, Any] = {"seconds": round(seconds, 2), "cpu_seconds": round(spent, 2)}
        if self._peak and seconds >= 1:
            usage["memory_mb"] = self._peak
        elif self._largest >= max(self._peak, 1):
            usage |= {"memory_mb": self._largest, "largest_process": True}
        return {"usage": usage | {"nodes": 1}}

    def ending(self, status: int) -> dict[str, Any]:
        """Return the fields of exit.json."""
        now = int(time.time())
        cause = self.stopped if status else ""
        if status in KILLED and not cause and self._is_cancelled(self.folder):
            cause = records.CANCELLED
        return {
            "code": status,
            "signal": status - 128 if 128 < status <= 192 else 0,
            "cause": cause,
            "started": self._at,
            "ended": now,
            "seconds": now - self._at,
            "node": os.uname().nodename,
            "job": str(os.getpid()),
            "restarts": 0,
        }
