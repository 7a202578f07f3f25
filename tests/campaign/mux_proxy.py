"""Stands where an ssh master listens: passes packets and descriptors on to the real one, and fails at a chosen one."""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from yurt.transport import mux

POINTS = ("hello", "request", "descriptor 1", "descriptor 2", "descriptor 3", "greeted", "opened", "exit")
"""Where it can fail: before it passes on this packet or descriptor. The last three come from the master."""

_UP = {mux.HELLO: "hello", mux.NEW_SESSION: "request"}
_DOWN = {mux.HELLO: "greeted", mux.OPENED: "opened", mux.EXIT: "exit"}


def packet(*numbers: int, text: bytes = b"") -> bytes:
    body = b"".join(struct.pack(">I", each) for each in numbers) + text
    return struct.pack(">I", len(body)) + body


def refusal(text: bytes, kind: int = mux.FAILURE) -> bytes:
    """Return the packet of a master that refuses the first request of a connection."""
    return packet(kind, 0, len(text), text=text)


HELLO = packet(mux.HELLO, mux.VERSION)

ANSWERS = {
    "closed": b"",
    "garbage": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "zeros": bytes(64),
    "noise": bytes(range(255, 127, -1)),
    "half a packet": HELLO[:7],
    "another version": packet(mux.HELLO, 5),
    "an unknown message": HELLO + packet(0x80000099, 0, 0),
    "an exit code": HELLO + packet(mux.EXIT, 7, 0),
    "a refusal": HELLO + refusal(b"Session open refused by peer"),
    "no permission": HELLO + refusal(b"Permission denied", mux.DENIED),
    "no descriptors": HELLO + refusal(b"did not receive file descriptors"),
}
"""What the other side can say instead of a master."""


class MuxProxy:
    """Takes the place of a master's socket. At `point`, it answers and closes the connection.

    After `times` failures it listens no more, as after the end of a master; 0: it fails until it is closed.
    """

    def __init__(self, path: Path, point: str, answer: bytes, *, times: int, fail: Callable[[], object]) -> None:
        """`fail` is called before the answer."""
        self.path, self.real = path, path.with_name(f"{path.name}.r")
        self.point, self.answer, self.times, self.fail = point, answer, times, fail
        self.failures = 0
        self._lock = threading.Lock()
        path.rename(self.real)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._own = path.stat().st_ino
        self._listener.listen(20)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Stop, and remove the socket unless a new master has replaced it."""
        self._stop()
        for path in (self.path, self.real):
            with suppress(FileNotFoundError):
                if path == self.real or path.stat().st_ino == self._own:
                    path.unlink()

    def _stop(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _address = self._listener.accept()
                threading.Thread(target=self._serve, args=[client], daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        master = socket.socket(socket.AF_UNIX)
        with suppress(OSError):  # the master was killed
            master.connect(str(self.real))
        down = threading.Thread(target=self._pass_down, args=[master, client], daemon=True)
        with suppress(OSError, EOFError):
            down.start()
            self._pass_up(client, master)
        for each in (client, master):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        down.join()
        client.close()
        master.close()

    def _pass_up(self, client: socket.socket, master: socket.socket) -> None:
        while True:
            kind, whole = _next(client)
            self._at(_UP.get(kind, ""), client)
            master.sendall(whole)
            for number in (1, 2, 3) if kind == mux.NEW_SESSION else ():
                byte, passed, _flags, _address = socket.recv_fds(client, 1, 1)
                try:
                    self._at(f"descriptor {number}", client)
                    socket.send_fds(master, [byte], passed)
                finally:
                    for each in passed:
                        os.close(each)

    def _pass_down(self, master: socket.socket, client: socket.socket) -> None:
        with suppress(OSError, EOFError):
            while True:
                kind, whole = _next(master)
                self._at(_DOWN.get(kind, ""), client)
                client.sendall(whole)
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)

    def _at(self, point: str, client: socket.socket) -> None:
        """Fail if this is the point. EOFError ends the connection."""
        with self._lock:
            if point != self.point or (self.times and self.failures >= self.times):
                return
            self.failures += 1
            self.fail()
            if self.failures == self.times:
                self._stop()
        client.sendall(self.answer)
        raise EOFError


def _next(connection: socket.socket) -> tuple[int, bytes]:
    """Return the next packet, with its kind. EOFError at the end."""
    size = connection.recv(4, socket.MSG_WAITALL)
    if len(size) < 4:
        raise EOFError
    body = connection.recv(struct.unpack(">I", size)[0], socket.MSG_WAITALL)
    return int.from_bytes(body[:4], "big"), size + body
