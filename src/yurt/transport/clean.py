"""A remote shell for rsync: ssh, without the login's output before the command. Started as a script.

It copies both directions itself, because rsync's descriptors are non-blocking and ssh passes its own to a master; every
wait has a timeout. $YURT_CLEAN contains, with SEPARATOR between them: the descriptor for status bytes, the
marker, the timeout in seconds, the words of the ssh command. Every transfer waits until it has started, so it
imports little: no subprocess, json or contextlib.
"""

from __future__ import annotations

import fcntl
import os
import select
import sys
import time

SEPARATOR = "\x1f"

KILL, PIPE = 9, 13
"""Signals; the module signal takes as long to import as all others together."""

CHUNK = 1 << 18

PIPE_SIZE = 1 << 20
"""Bytes that a pipe to ssh can hold: with the default of 64 KB, a transfer takes four times as many steps."""
BEGUN, ALIVE, NO_OUTPUT = b"b", b".", b"!"
"""Status bytes: the command started; bytes were copied in the last second; the command failed without output."""

SMALL = 64
"""Size of rsync's keep-alive messages; they do not prove that the remote side is alive."""

GRACE = 5.0
"""Seconds that ssh has to exit after rsync closed its end."""

LOST = 255
"""The exit code of ssh without a connection."""


def main(arguments: list[str]) -> int:
    status, mark, silence, *ssh = os.environ.pop("YURT_CLEAN").split(SEPARATOR)
    command = f"printf %s {mark}; exec {' '.join(arguments[1:])}".replace("'", "'\\''")
    process = _Process([*ssh, f"sh -c '{command}'"])
    try:
        had_output = _relay(process, mark.encode(), int(status), float(silence))
        code = process.wait(GRACE)
        if not had_output and code not in (0, LOST):
            _report(int(status), NO_OUTPUT)
        return code
    except OSError:
        return LOST
    finally:
        process.kill()


class _Process:
    """ssh, with pipes to its standard input and output."""

    def __init__(self, argv: list[str]) -> None:
        theirs_in, self.stdin = os.pipe()
        self.stdout, theirs_out = os.pipe()
        for each in (self.stdin, self.stdout):
            enlarge(each)
        moves = [(os.POSIX_SPAWN_DUP2, theirs_in, 0), (os.POSIX_SPAWN_DUP2, theirs_out, 1)]
        self._pid = os.posix_spawnp(argv[0], argv, os.environ, file_actions=moves, setsigdef=[PIPE])
        self._code: int | None = None
        os.close(theirs_in)
        os.close(theirs_out)

    def close_stdin(self) -> None:
        if self.stdin >= 0:
            os.close(self.stdin)
            self.stdin = -1

    def wait(self, seconds: float) -> int:
        """Return the exit code. TimeoutError if it does not exit in time."""
        deadline = time.monotonic() + seconds
        while self._code is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > deadline:
                raise TimeoutError
            else:
                time.sleep(0.001)
        return self._code

    def kill(self) -> None:
        if self._code is None:
            os.kill(self._pid, KILL)


def enlarge(pipe: int) -> None:
    """Let a pipe hold more, where the system allows it."""
    try:
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
    except (OSError, AttributeError):
        return


class _Flow:
    """One direction of the copy: bytes read from the source and not yet written to the sink."""

    def __init__(self, source: int, sink: int) -> None:
        self.source, self.sink = source, sink
        self.held, self.open = b"", True
        os.set_blocking(source, False)
        os.set_blocking(sink, False)

    def waits(self) -> dict[int, int]:
        if self.held:
            return {self.sink: select.POLLOUT}
        return {self.source: select.POLLIN} if self.open else {}

    def move(self, ready: dict[int, int]) -> int:
        """Read or write without blocking; return the number of bytes written."""
        if self.held and self.sink in ready:
            count = _write(self.sink, self.held)
            self.held = self.held[count:]
            return count
        if not self.held and self.source in ready:
            chunk = _read(self.source)
            self.open, self.held = chunk != b"", chunk or b""
        return 0


def _relay(process: _Process, mark: bytes, status: int, silence: float) -> bool:
    """Copy until the remote side closes; return whether the command wrote anything. TimeoutError without traffic."""
    up, down = _Flow(0, process.stdin), _Flow(process.stdout, 1)
    noise: bytes | None = b""  # None once the command has started
    open_sink, had_output = True, False
    moved = reported = time.monotonic()
    while down.open or down.held:
        # Always poll rsync's end: it may close before all of its output has been copied.
        ready = _ready({**({1: 0} if open_sink else {}), **down.waits(), **up.waits()})
        open_sink = open_sink and not ready.get(1, 0) & ~select.POLLOUT
        now = time.monotonic()
        if now - moved > (silence if open_sink or up.open else GRACE):
            raise TimeoutError
        try:
            if down.move(ready) or (down.held and noise is not None):
                moved = now
        except OSError:
            open_sink = False
        if noise is not None and down.held:
            noise, down.held = _after(mark, noise + down.held)
            if noise is None:
                _report(status, BEGUN)
        had_output = had_output or down.held != b""
        if not open_sink:
            down.held = b""
        try:
            if up.move(ready) > SMALL:
                moved = now
        except OSError:  # the remote side exited; its last output may still arrive
            up.open, up.held = False, b""
        if not up.open and not up.held:
            process.close_stdin()
        if moved - reported >= 1:
            reported = moved
            _report(status, ALIVE)
    return had_output


def _ready(waits: dict[int, int]) -> dict[int, int]:
    poll = select.poll()
    for descriptor, events in waits.items():
        poll.register(descriptor, events)
    return dict(poll.poll(1000))


def _after(mark: bytes, text: bytes) -> tuple[bytes | None, bytes]:
    """Return the bytes that may start the marker, or None if it is complete; and the bytes after the marker."""
    _noise, found, rest = text.partition(mark)
    return (None, rest) if found else (text[-len(mark) :], b"")


def _read(descriptor: int) -> bytes | None:
    """Return bytes; b"" at the end; None if none are available now."""
    try:
        return os.read(descriptor, CHUNK)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _write(descriptor: int, text: bytes) -> int:
    try:
        return os.write(descriptor, text)
    except BlockingIOError:
        return 0


def _report(status: int, sign: bytes) -> None:
    try:
        os.write(status, sign)
    except OSError:
        return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
