"""Opens sessions on an OpenSSH master by itself, which is much faster than starting `ssh -S` for each command.

The protocol is described in PROTOCOL.mux of OpenSSH: packets on the master's socket, and three descriptors passed for
the streams of the command. Whatever is unusual is left to the ssh program (`Unusable`).
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import time
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket  # its wrapper is slow to import
from collections.abc import Callable
from typing import IO

from yurt.transport.command import Silent
from yurt.transport.mux_settings import MuxSettings

VERSION = 4

HELLO, NEW_SESSION = 0x1, 0x10000002
DENIED, FAILURE, EXIT, OPENED, NO_TERMINAL = 0x80000002, 0x80000003, 0x80000004, 0x80000006, 0x80000008

NO_ESCAPE = 0xFFFFFFFF

CONNECT = 2.0
"""Seconds to wait until the master accepts a connection to its socket."""

LOST = 255
"""What ssh exits with if the connection is lost."""

LONGEST = 1 << 18
"""A packet of a master is never longer."""


class Unusable(Exception):
    """What listens on the socket does not speak the expected protocol. Nothing reached the site."""


class NoSession(Exception):
    """There is no master, or it did not open a session. Nothing reached the site."""


class MuxSession:
    """One command on the shared connection: its streams, and the master's messages about it."""

    def __init__(self, path: str, command: str, settings: MuxSettings, err: IO[bytes] | None = None) -> None:
        """Ask for a session. `err`: a file for standard error; None: a pipe."""
        stdin, stdout = os.pipe(), os.pipe()
        stderr = os.pipe() if err is None else (None, os.dup(err.fileno()))
        self._begin(socket(AF_UNIX, SOCK_STREAM), (stdin[1], stdout[0], stderr[0]))
        theirs = (stdin[0], stdout[1], stderr[1])
        try:
            self._control.settimeout(CONNECT)
            self._control.connect(path)
            self._control.sendall(request(command, settings))
            for each in theirs:
                self._control.sendmsg([b"\0"], [(SOL_SOCKET, SCM_RIGHTS, each.to_bytes(4, sys.byteorder))])
            self._control.setblocking(False)
        except OSError as error:
            self.end()
            raise NoSession(str(error)) from None
        except BaseException:
            self.end()
            raise
        finally:
            for each in theirs:
                os.close(each)

    @classmethod
    def adopt(cls, control: socket, streams: tuple[int, int, int]) -> MuxSession:
        """Return a session that was asked for already. `control` does not block."""
        session = cls.__new__(cls)
        session._begin(control, streams)
        return session

    def _begin(self, control: socket, streams: tuple[int, int, int | None]) -> None:
        self._code: int | None = None
        self._received, self._greeted, self._opened = bytearray(), False, False
        self._control = control
        stdin, stdout, stderr = streams
        self.stdin, self.stdout = os.fdopen(stdin, "wb", 0), os.fdopen(stdout, "rb", 0)
        self.stderr = None if stderr is None else os.fdopen(stderr, "rb", 0)

    def require_running(self) -> None:
        """Raise NoSession if the master has said that the command has ended, or has ended itself."""
        try:
            while self._code is None and self._wait(0):
                pass
        except BaseException:
            self.end()
            raise
        if self._code is not None:
            self.end()
            raise NoSession("the command has ended")

    def wait_until_open(self, slow: float, silent: float | None, on_slow: Callable[[], None]) -> None:
        """Wait until the site has opened the session. `on_slow` is called after `slow` seconds; Silent after `silent`.

        Before that, nothing may be written to `stdin`: so an exception proves that nothing reached the site.
        """
        began, told = time.monotonic(), False
        try:
            while not self._opened:
                left = (float("inf") if silent is None else silent) - (time.monotonic() - began)
                if left <= 0:
                    raise Silent
                if not self._wait(left if told else min(left, slow)) and not told:
                    told = True
                    on_slow()
        except BaseException:
            self.end()
            raise

    def wait(self, timeout: float | None = None) -> int:
        with contextlib.suppress(Unusable, NoSession):
            while self._code is None:
                if not self._wait(timeout):
                    raise TimeoutError
        self._control.close()
        return LOST if self._code is None else self._code

    def end(self) -> None:
        self._control.close()
        for pipe in (self.stdin, self.stdout, self.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _wait(self, seconds: float | None) -> bool:
        """Wait for messages of the master, and read them. Return False if none came within the time."""
        poll = select.poll()
        poll.register(self._control.fileno(), select.POLLIN)
        if not poll.poll(None if seconds is None or seconds == float("inf") else max(0.0, seconds) * 1000):
            return False
        try:
            chunk = self._control.recv(1 << 16)
        except OSError:
            chunk = b""
        if not chunk:
            raise NoSession("the connection was closed")
        self._received += chunk
        while (packet := self._packet()) is not None:
            self._read(packet)
        return True

    def _packet(self) -> bytes | None:
        """Return the next complete packet."""
        length = int.from_bytes(self._received[:4], "big")
        if len(self._received) >= 4 and not 4 <= length <= LONGEST:
            raise Unusable
        if len(self._received) < 4 + length or not length:
            return None
        packet = bytes(self._received[4 : 4 + length])
        del self._received[: 4 + length]
        return packet

    def _read(self, packet: bytes) -> None:
        kind, first, rest = int.from_bytes(packet[:4], "big"), int.from_bytes(packet[4:8], "big"), packet[8:]
        if not self._greeted:
            if (kind, first) != (HELLO, VERSION):
                raise Unusable
            self._greeted = True
        elif kind == OPENED and not self._opened:
            self._opened = True
        elif kind in (DENIED, FAILURE):
            raise NoSession(rest[4:].decode(errors="replace"))
        elif kind == EXIT and self._opened:
            self._code = int.from_bytes(rest[:4], "big")
        elif kind != NO_TERMINAL:
            raise Unusable


def _number(value: int) -> bytes:
    return value.to_bytes(4, "big")


def _string(value: bytes) -> bytes:
    return _number(len(value)) + value


def _packet(payload: bytes) -> bytes:
    return _string(payload)


def request(command: str, settings: MuxSettings) -> bytes:
    """Return the packets that ask for a session; three descriptors follow."""
    return _packet(_number(HELLO) + _number(VERSION)) + _packet(_session(command, settings))


def _session(command: str, settings: MuxSettings) -> bytes:
    flags = (0, 0, int(settings.agent), 0)  # terminal, X11, agent, subsystem
    parts = [_number(NEW_SESSION), _number(0), _string(b""), *map(_number, flags), _number(NO_ESCAPE), _string(b"")]
    parts += [_string(os.fsencode(command)), *(_string(os.fsencode(each)) for each in settings.variables(os.environ))]
    return b"".join(parts)
