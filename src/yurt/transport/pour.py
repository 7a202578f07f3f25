"""Runs a script on a host and feeds it a stream of any length. The script says first where the stream should start."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import select
import tempfile
import time
from collections.abc import Callable, Iterator

from yurt.errors import UnreachableError
from yurt.transport import wire
from yurt.transport.base import TIMEOUT, Answer, Host
from yurt.transport.command import Command

SILENCE = 60.0
"""Seconds after which a host that takes no bytes times out."""

Source = Callable[[int], Iterator[bytes]]
"""Yields the bytes from this position on."""


def pour(
    host: Host, script: str, *arguments: str, source: Source, moved: Callable[[int], None], timeout: float = 600
) -> Answer:
    """Run a script; if its first line is `at BYTES`, feed it the source from there on. Return its result.

    `moved` receives the position in the source. `timeout` limits what the script does after the last byte.
    UnreachableError: the script may have got a part of the bytes.
    """
    for attempt in itertools.count(1):
        parcel = host.pack(script, arguments, gnu=host.gnu())
        with host.session(time.monotonic() + TIMEOUT), tempfile.TemporaryFile() as errors:
            command = host.start(parcel, errors)
            try:
                out = _Feed(host, command, parcel).run(source, moved, timeout)
                returned = command.wait(timeout=30)
            finally:
                command.end()
            errors.seek(0)
            err = errors.read()
        framed = wire.unpack(parcel, out)
        if framed is not None and framed.code is not None:
            return Answer(framed.code, framed.out, wire.errors_after(parcel, err))
        if framed is not None or not host.retry(err, attempt):
            raise host.lost(returned, err or out, begun=framed is not None)
    raise AssertionError("not reached")


class _Feed:
    """One command: what was read from it, and the next bytes to write."""

    def __init__(self, host: Host, command: Command, parcel: wire.Parcel) -> None:
        self._host, self._parcel = host, parcel
        self._stdin, self._stdout = command.stdin, command.stdout.fileno()
        self._out, self._open = b"", True
        os.set_blocking(command.stdin.fileno(), False)

    def run(self, source: Source, moved: Callable[[int], None], timeout: float) -> bytes:
        """Feed the process and return all of its output."""
        with contextlib.suppress(BrokenPipeError):
            self._write(self._parcel.stdin)
            position = self._position()
            if position is not None:
                for chunk in source(position):
                    self._write(chunk)
                    position += len(chunk)
                    moved(position)
        with contextlib.suppress(OSError):
            self._stdin.close()
        deadline = time.monotonic() + timeout
        while self._open:
            self._read(max(0.0, deadline - time.monotonic()))
        return self._out

    def _position(self) -> int | None:
        """Wait for the first line of the script; None if it wants no bytes."""
        while self._open:
            _noise, begun, rest = self._out.partition(self._parcel.begin)
            if begun and b"\n" in rest:
                found = re.match(rb"at (\d+)\n", rest)
                return int(found[1]) if found else None
            self._read(SILENCE)
        return None

    def _write(self, chunk: bytes) -> None:
        left = memoryview(chunk)
        while left:
            readable, writable, _ = select.select(
                [self._stdout] if self._open else [], [self._stdin.fileno()], [], SILENCE
            )
            if readable:
                self._read(0)
            if writable:
                with contextlib.suppress(BlockingIOError):
                    left = left[os.write(self._stdin.fileno(), left) :]
            if not readable and not writable:
                raise self._late()

    def _read(self, seconds: float) -> None:
        if not select.select([self._stdout], [], [], seconds)[0]:
            raise self._late()
        chunk = os.read(self._stdout, 1 << 16)
        self._out, self._open = self._out + chunk, bool(chunk)

    def _late(self) -> UnreachableError:
        return UnreachableError(
            f"{self._host.name}: the connection timed out",
            code="timed-out",
            hint="run the command again; it continues",
        )
