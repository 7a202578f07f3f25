"""A remote shell for rsync: ssh, without whatever a login prints before the command. Started as a script.

It copies both ways itself, since rsync's ends do not block and ssh lends its own to a master; and it never waits
without an end. $YURT_CLEAN holds the descriptor for signs of life, the mark, seconds of silence, and ssh's words.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time

CHUNK = 1 << 18
BEGUN, ALIVE, MUTE = b"b", b".", b"!"
"""Signs of life: the command has begun; bytes were moved in the last second; it ended without a word."""

SMALL = 64
"""Bytes that rsync sends every now and then only to seem alive; they say nothing of the far side."""

GRACE = 5.0
"""Seconds in which ssh must have ended when nobody is there to talk to."""

LOST = 255
"""The exit code of ssh without a connection."""


def main(words: list[str]) -> int:
    life, mark, silence, *ssh = json.loads(os.environ.pop("YURT_CLEAN"))
    command = f"printf %s {mark}; exec {' '.join(words[1:])}".replace("'", "'\\''")
    process = subprocess.Popen([*ssh, f"sh -c '{command}'"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    try:
        spoke = _relay(process, mark.encode(), int(life), float(silence))
        code = process.wait(timeout=GRACE)
        if not spoke and code not in (0, LOST):
            _tell(int(life), MUTE)
        return code
    except (subprocess.TimeoutExpired, OSError):
        return LOST
    finally:
        process.kill()


class _Flow:
    """One direction: what was read of a source, and is not written to the sink yet."""

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
        """Read or write what can be now; returns how many bytes were written."""
        if self.held and self.sink in ready:
            count = _write(self.sink, self.held)
            self.held = self.held[count:]
            return count
        if not self.held and self.source in ready:
            chunk = _read(self.source)
            self.open, self.held = chunk != b"", chunk or b""
        return 0


def _relay(process: subprocess.Popen[bytes], mark: bytes, life: int, silence: float) -> bool:
    """Copy until the far side has ended; whether the command said anything. TimeoutError after too long a silence."""
    assert process.stdin is not None and process.stdout is not None
    up, down = _Flow(0, process.stdin.fileno()), _Flow(process.stdout.fileno(), 1)
    noise: bytes | None = b""  # None once the command has begun
    listens, spoke = True, False
    moved = said = time.monotonic()
    while down.open or down.held:
        # rsync's end is always looked at. It may be closed before all it said has gone out.
        ready = _ready({**({1: 0} if listens else {}), **down.waits(), **up.waits()})
        listens = listens and not ready.get(1, 0) & ~select.POLLOUT
        now = time.monotonic()
        if now - moved > (silence if listens or up.open else GRACE):
            raise TimeoutError
        try:
            if down.move(ready) or (down.held and noise is not None):
                moved = now
        except OSError:
            listens = False
        if noise is not None and down.held:
            noise, down.held = _after(mark, noise + down.held)
            if noise is None:
                _tell(life, BEGUN)
        spoke = spoke or down.held != b""
        if not listens:
            down.held = b""
        try:
            if up.move(ready) > SMALL:
                moved = now
        except OSError:  # the far side ended; what it said last is still to come
            up.open, up.held = False, b""
        if not up.open and not up.held:
            process.stdin.close()
        if moved - said >= 1:
            said = moved
            _tell(life, ALIVE)
    return spoke


def _ready(waits: dict[int, int]) -> dict[int, int]:
    poll = select.poll()
    for descriptor, events in waits.items():
        poll.register(descriptor, events)
    return dict(poll.poll(1000))


def _after(mark: bytes, text: bytes) -> tuple[bytes | None, bytes]:
    """What may be the beginning of the mark, None if all of it was there; and what follows it."""
    _noise, found, rest = text.partition(mark)
    return (None, rest) if found else (text[-len(mark) :], b"")


def _read(descriptor: int) -> bytes | None:
    """Bytes; none at the end; None if there are none now."""
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


def _tell(life: int, sign: bytes) -> None:
    with contextlib.suppress(OSError):
        os.write(life, sign)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
