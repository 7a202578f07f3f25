"""Runs a script on a host with the standard streams of this process: input, output and errors pass as they come."""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import subprocess
import threading
import time
from collections.abc import Collection

from yurt.clocks import clocks
from yurt.errors import YurtError
from yurt.transport import wire
from yurt.transport.base import TIMEOUT, Host
from yurt.transport.guard import guarded
from yurt.transport.stream import CHUNK

END = 'kill -TERM "-$(ps -o pgid= -p "$1" | tr -d " ")"'
"""Ends the process group of a script. dash and busybox do not accept `--` here."""


def pass_through(host: Host, script: str) -> int:
    """Run a script and return its exit code. Its streams are those of this process, without login banners.

    UnreachableError: no exit code arrived; the script may still run. If this process is interrupted, the script is
    ended.
    """
    for attempt in itertools.count(1):
        parcel = host.pack(script, through=True, gnu=host.gnu())
        with host.session(time.monotonic() + TIMEOUT):
            passage = _Passage(host, parcel)
            try:
                with guarded(-passage.process.pid):
                    code = passage.run()
            except BaseException:
                passage.end()
                raise
        if code is not None:
            return code
        if passage.begun or not host.retry(passage.errors, attempt):
            raise host.lost(passage.returned, passage.errors, begun=passage.begun)
    raise AssertionError("not reached")


class _Passage:
    """One attempt to run a script: its process here, and what has arrived of it."""

    def __init__(self, host: Host, parcel: wire.Parcel) -> None:
        self._host, self._parcel = host, parcel
        self.process = subprocess.Popen(
            host.argv(parcel.command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._pid, self._started = b"", time.monotonic()
        self.begun = False
        self.errors = b""
        """What came on standard error before the script began."""
        self.returned = 0

    def run(self) -> int | None:
        """Return the exit code of the script; None if none arrived."""
        process = self.process
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(self._parcel.stdin)
            process.stdin.flush()
        held, last = b"", None
        out, err = process.stdout.fileno(), process.stderr.fileno()
        reading = {out, err}
        while reading:
            for ready in self._ready(reading):
                chunk = os.read(ready, CHUNK)
                if not chunk:
                    reading.discard(ready)
                elif ready == err:
                    self._pass_errors(chunk)
                else:
                    held = self._pass_output(held + chunk)
            if self.begun and self._parcel.end in held:
                last = wire.unpack(self._parcel, self._parcel.begin + held)
        self.returned = process.wait()
        return None if last is None else last.code

    def _ready(self, reading: Collection[int]) -> list[int]:
        """Wait until something can be read. UnreachableError if the script does not begin in time."""
        silence = None if self.begun else self._host.silence()
        if silence is None:
            return select.select(list(reading), [], [])[0]
        slow, waited = clocks().slow, time.monotonic() - self._started
        if waited < slow and (ready := select.select(list(reading), [], [], min(slow, silence) - waited)[0]):
            return ready
        if waited < slow < silence:
            self._host.report_slow()
        ready = select.select(list(reading), [], [], max(0.0, self._started + silence - time.monotonic()))[0]
        if not ready:
            raise self._host.did_not_respond()
        return ready

    def _pass_output(self, held: bytes) -> bytes:
        """Write what is output of the script for certain; return the rest."""
        if not self.begun:
            _banner, found, rest = held.partition(self._parcel.begin)
            if not found:
                return held
            self.begun, held = True, rest
            threading.Thread(target=self._pass_input, daemon=True).start()
        held = held.replace(self._parcel.alive, b"")
        sure = min(wire.certain(marker, held) for marker in (self._parcel.end, self._parcel.alive))
        _write(1, held[:sure])
        return held[sure:]

    def _pass_errors(self, chunk: bytes) -> None:
        if self._pid:
            _write(2, chunk)
            return
        self.errors += chunk
        _banner, found, rest = self.errors.partition(self._parcel.begin)
        pid, newline, rest = rest.partition(b"\n")
        if found and newline:
            self._pid, self.errors = pid, b""
            _write(2, rest)

    def _pass_input(self) -> None:
        pipe = self.process.stdin
        assert pipe is not None
        with contextlib.suppress(OSError, ValueError):
            while chunk := os.read(0, CHUNK):
                pipe.write(chunk)
                pipe.flush()
        with contextlib.suppress(OSError, ValueError):
            pipe.close()

    def end(self) -> None:
        """End the script, if its host can be reached, and the process here with its children."""
        if self.process.poll() is None and self._pid.isdigit():
            with contextlib.suppress(YurtError):
                self._host.run(END, self._pid.decode(), timeout=10)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, 9)
        self.process.wait()


def _write(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]
