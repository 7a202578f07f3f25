"""Feeds a command and reads its output at the same time. Notices when the other side does not respond."""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from yurt.transport.command import Silent

if TYPE_CHECKING:
    from yurt.transport.command import Command
    from yurt.transport.pace import Pace

CHUNK = 1 << 16

MOST = 512 << 20
"""Bytes that an answer may have. Records of 100,000 runs are a part of that; one that is larger does not end."""

REPORT = b"at "
"""A line of the receiver of an upload: how many bytes it has written."""


class Endless(Exception):
    """The output has more than MOST bytes."""


class Limits(msgspec.Struct, frozen=True):
    """How long to wait, in seconds."""

    slow: float
    """Until the user reads about it."""
    silent: float | None
    """For the first response, and for the next report of an upload; None: as long as for everything."""
    timeout: float
    """For everything; for an upload, after its last report."""


class Exchange:
    """One command: what is left to write, and what was read."""

    def __init__(
        self,
        command: Command,
        begin: bytes,
        limits: Limits,
        *,
        on_slow: Callable[[], None],
        on_slow_part: Callable[[], None] | None = None,
        pace: Pace | None = None,
        moved: Callable[[int], None] = lambda _done: None,
    ) -> None:
        """The command responds when `begin` is in its output. `moved`: see `Host.send`.

        `on_slow_part` is called if the command responds and then takes long.
        """
        assert command.stderr is not None
        self._command, self._begin, self._limits = command, begin, limits
        self._on_slow, self._on_slow_part = on_slow, on_slow_part
        self._stdin: int | None = command.stdin.fileno()
        self._read_from = {command.stdout.fileno(): bytearray(), command.stderr.fileno(): bytearray()}
        self._out, self._err = self._read_from.values()
        self._pace, self._moved = pace, moved
        self._started = self._heard = time.monotonic()
        self._begun, self._told, self._parsed = False, False, 0

    def run(self, script: bytes, content: bytes) -> tuple[int, bytes, bytes]:
        """Write a script and its input; return its exit code, its output and its errors.

        Silent if it does not respond in time, or if an upload stops; TimeoutError after the timeout; Endless.
        """
        assert self._stdin is not None
        os.set_blocking(self._stdin, False)
        self._head = memoryview(script if self._pace is not None else script + content)
        self._body = memoryview(content)
        while self._read_from:
            self._close_stdin_if_complete()
            poll = select.poll()
            for descriptor in self._read_from:
                poll.register(descriptor, select.POLLIN)
            if self._stdin is not None and (self._head or (self._pace is not None and self._pace.allowance())):
                poll.register(self._stdin, select.POLLOUT)
            for descriptor, _events in poll.poll(max(0.0, self._until() - time.monotonic()) * 1000 + 1):
                if descriptor == self._stdin:
                    self._write()
                else:
                    self._read(descriptor)
            self._check(time.monotonic())
        for pipe in (self._command.stdout, self._command.stderr):
            if pipe is not None:
                pipe.close()
        code = self._command.wait(max(1.0, self._heard + self._limits.timeout - time.monotonic()))
        return code, bytes(self._out), bytes(self._err)

    @property
    def _uploading(self) -> bool:
        return self._pace is not None and (self._pace.reported or 0) < len(self._body)

    @property
    def _silent_at(self) -> float:
        waits = self._limits.silent is not None and (not self._begun or self._uploading)
        return self._heard + (self._limits.silent or 0) if waits else float("inf")

    @property
    def _timeout_at(self) -> float:
        return (self._started if self._pace is None else self._heard) + self._limits.timeout

    def _until(self) -> float:
        """Return when to stop waiting for the next event."""
        slow = float("inf") if self._slow_now() is None else self._started + self._limits.slow
        return min(slow, self._silent_at, self._timeout_at)

    def _slow_now(self) -> Callable[[], None] | None:
        """Return what to call if it takes long now; None if the user need not know, or knows."""
        return None if self._told else self._on_slow_part if self._begun else self._on_slow

    def _check(self, now: float) -> None:
        if now >= self._started + self._limits.slow and (tell := self._slow_now()) is not None:
            self._told = True
            tell()
        if now >= self._silent_at:
            raise Silent
        if now >= self._timeout_at:
            raise TimeoutError

    def _close_stdin_if_complete(self) -> None:
        if self._stdin is not None and not self._head and (self._pace is None or self._pace.written >= len(self._body)):
            self._close_stdin()

    def _close_stdin(self) -> None:
        self._stdin = None
        with contextlib.suppress(OSError):
            self._command.stdin.close()

    def _write(self) -> None:
        assert self._stdin is not None
        try:
            if self._head:
                self._head = self._head[os.write(self._stdin, self._head[:CHUNK]) :]
            elif self._pace is not None:
                at = self._pace.written
                count = os.write(self._stdin, self._body[at : at + min(CHUNK, self._pace.allowance())])
                self._pace.wrote(count, time.monotonic())
        except BlockingIOError:
            return
        except BrokenPipeError:  # it exited; its output says why
            self._close_stdin()

    def _read(self, descriptor: int) -> None:
        chunk = os.read(descriptor, CHUNK)
        if not chunk:
            del self._read_from[descriptor]
            return
        self._read_from[descriptor] += chunk
        if len(self._read_from[descriptor]) > MOST:
            raise Endless
        if not self._begun and (at := self._out.find(self._begin)) >= 0:
            self._begun, self._heard, self._parsed = True, time.monotonic(), at + len(self._begin)
        if self._begun and self._pace is not None:
            self._read_reports(self._pace)

    def _read_reports(self, pace: Pace) -> None:
        end = self._out.rfind(b"\n") + 1
        lines = bytes(self._out[self._parsed : end]).split(b"\n") if end > self._parsed else []
        self._parsed = max(self._parsed, end)
        reports = [int(each) for line in lines if line.startswith(REPORT) and _is_number(each := line[len(REPORT) :])]
        if reports:
            self._heard = time.monotonic()
            pace.heard(reports[-1], self._heard)
            self._moved(reports[-1])


def _is_number(text: bytes) -> bool:
    return text.isdigit() and len(text) <= 18
