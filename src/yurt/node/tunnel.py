"""The far end of a tunnel: many connections to a port or socket of this node, over standard input and output.

A frame is a kind, the number of a connection, a length, and so many bytes. Each side may send WINDOW bytes of a
connection before the other one has passed some on: a connection whose reader is slow does not hold up the others.
"""

import os
import selectors
import socket
import struct
import sys
import zlib
from typing import Dict, List, Optional, Union

HEAD = struct.Struct(">BII")
OPEN, DATA, END, CLOSE, CREDIT, PING, PAD, PACKED = range(1, 9)
"""OPEN: connect. END: no more bytes follow. CLOSE: the connection is gone. CREDIT: so many bytes were passed on.
PAD: so many bytes that mean nothing follow. PACKED: DATA, compressed."""

MAGIC = b"\0yurt-tunnel\0"
"""The first bytes; what dotfiles print comes before them."""

WINDOW = 1 << 18
CHUNK = 1 << 16

PAUSE = 0.001
"""Seconds without new bytes after which the last ones are padded."""

LARGEST_PACKET = 9000

SAMPLE = 2048
"""Bytes of a part that are compressed to see whether it is worth it."""

Address = Union[str, int]
"""A path of a unix socket, or a port of this node's loopback."""


def packed(part: bytes) -> bytes:
    """Return a part of an answer, compressed; empty if that is not worth it. srun passes on only 1 KB at a time."""
    if len(part) < 1024 or len(zlib.compress(part[:SAMPLE], 1)) > 0.7 * len(part[:SAMPLE]):
        return b""
    return zlib.compress(part, 1)


def padding() -> bytes:
    """Return what follows the last bytes of an answer: more than a packet under srun, else nothing.

    With Slurm 22.05, 10 KB from a step came 44 ms late, and at once with more than a packet behind them. It seems
    that a TCP packet that is not full waits for an acknowledgement, which the other side puts off for 40 ms.
    """
    if "SLURM_STEP_ID" not in os.environ:
        return b""
    largest = 1500
    try:
        for name in os.listdir("/sys/class/net"):
            if name != "lo":
                with open("/sys/class/net/%s/mtu" % name) as file:
                    largest = max(largest, int(file.read()))
    except (OSError, ValueError):
        pass
    size = min(largest, LARGEST_PACKET) + 500
    return HEAD.pack(PAD, 0, size) + bytes(size)


class _Link:
    """One connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.connected = False
        self.credit = WINDOW
        self.waiting = bytearray()
        """Bytes for the program."""
        self.ended = False
        """Whether no more bytes for the program follow."""
        self.read_all = False
        """Whether the program has sent everything."""


class FarEnd:
    """Serves one tunnel until its standard input ends."""

    def __init__(self, address: Address, source: int, target: int) -> None:
        self._address, self._source, self._target = address, source, target
        self._links: Dict[int, _Link] = {}
        self._select = selectors.DefaultSelector()
        self._in, self._out = bytearray(), bytearray()
        self._over = False
        self._padding = padding()
        self._to_pad = False
        """Whether bytes were sent since the last padding."""

    def serve(self) -> None:
        for descriptor in (self._source, self._target):
            os.set_blocking(descriptor, False)
        self._select.register(self._source, selectors.EVENT_READ)
        self._out += MAGIC
        self._send(PING, 0)
        while not self._over or self._out:
            self._watch()
            ready = self._select.select(PAUSE if self._to_pad and not self._out else None)
            if not ready:
                self._to_pad = False
                self._out += self._padding
                self._flush()
            for key, events in ready:
                if key.fd == self._source:
                    self._read()
                elif key.fd == self._target:
                    self._flush()
                else:
                    self._serve_link(key.data, events)

    def _watch(self) -> None:
        """Watch for what can be done now."""
        self._set(self._target, selectors.EVENT_WRITE if self._out else 0, None)
        for number, link in self._links.items():
            events = selectors.EVENT_WRITE if link.waiting or not link.connected else 0
            if link.connected and not link.read_all and link.credit > 0 and len(self._out) < 4 * WINDOW:
                events |= selectors.EVENT_READ
            self._set(link.sock.fileno(), events, number)

    def _set(self, descriptor: int, events: int, data: Optional[int]) -> None:
        known = self._select.get_map().get(descriptor)
        if known is None and events:
            self._select.register(descriptor, events, data)
        elif known is not None and not events:
            self._select.unregister(descriptor)
        elif known is not None and known.events != events:
            self._select.modify(descriptor, events, data)

    def _read(self) -> None:
        """Read frames from the near end."""
        try:
            part = os.read(self._source, CHUNK)
        except BlockingIOError:
            return
        if not part:
            self._over = True
            self._select.unregister(self._source)
            for number in list(self._links):
                self._drop(number)
            return
        self._in += part
        while len(self._in) >= HEAD.size:
            kind, number, length = HEAD.unpack_from(self._in)
            payload = length if kind in (DATA, PAD) else 0
            if len(self._in) < HEAD.size + payload:
                return
            content = bytes(self._in[HEAD.size : HEAD.size + payload])
            del self._in[: HEAD.size + payload]
            self._take(kind, number, length, content)

    def _take(self, kind: int, number: int, length: int, content: bytes) -> None:
        if kind == PING:
            self._send(PING, 0)
        elif kind == OPEN:
            self._open(number)
        link = self._links.get(number)
        if link is None:
            return
        if kind == DATA:
            link.waiting += content
        elif kind == END:
            link.ended = True
            if link.connected:
                self._end(number, link)
        elif kind == CREDIT:
            link.credit += length
        elif kind == CLOSE:
            self._drop(number)

    def _open(self, number: int) -> None:
        where = self._address if isinstance(self._address, str) else ("127.0.0.1", self._address)
        sock = socket.socket(socket.AF_UNIX if isinstance(where, str) else socket.AF_INET)
        sock.setblocking(False)
        self._links[number] = _Link(sock)
        try:
            sock.connect(where)
        except BlockingIOError:
            pass
        except OSError:
            self._lose(number)

    def _serve_link(self, number: int, events: int) -> None:
        link = self._links.get(number)
        if link is None:
            return
        try:
            if events & selectors.EVENT_WRITE:
                self._write(number, link)
            if events & selectors.EVENT_READ:
                self._pass_on(number, link)
        except BlockingIOError:
            pass
        except OSError:
            self._lose(number)

    def _write(self, number: int, link: _Link) -> None:
        if not link.connected:
            code = link.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                raise OSError(code, os.strerror(code))
            link.connected = True
        if link.waiting:
            sent = link.sock.send(link.waiting)
            del link.waiting[:sent]
            self._send(CREDIT, number, sent)
        self._end(number, link)

    def _pass_on(self, number: int, link: _Link) -> None:
        part = link.sock.recv(min(CHUNK, link.credit))
        if part:
            link.credit -= len(part)
            small = packed(part) if self._padding else b""
            self._send(PACKED if small else DATA, number, len(small or part), small or part)
            return
        link.read_all = True
        self._send(END, number)
        self._end(number, link)

    def _end(self, number: int, link: _Link) -> None:
        """Tell the program that no more bytes follow, once it has all of them."""
        if not link.ended or link.waiting:
            return
        if link.read_all:
            self._drop(number)
            return
        try:
            link.sock.shutdown(socket.SHUT_WR)
        except OSError:  # it has ended, too
            pass

    def _lose(self, number: int) -> None:
        self._send(CLOSE, number)
        self._drop(number)

    def _drop(self, number: int) -> None:
        link = self._links.pop(number)
        self._set(link.sock.fileno(), 0, None)
        link.sock.close()

    def _send(self, kind: int, number: int, length: int = 0, content: bytes = b"") -> None:
        self._out += HEAD.pack(kind, number, length) + content
        self._to_pad = bool(self._padding)
        self._flush()

    def _flush(self) -> None:
        try:
            while self._out:
                sent = os.write(self._target, self._out[:CHUNK])
                del self._out[:sent]
        except BlockingIOError:
            pass
        except OSError:  # nobody reads any more
            self._over = True
            del self._out[:]


def main(words: List[str]) -> None:
    """Serve a tunnel: unix PATH, there PATH for a socket that must be there, or tcp PORT."""
    kind, address = words
    if kind == "there" and not os.path.exists(address):  # a session of ssh may not see the folders of the job
        sys.exit("yurt: there is no socket %s on this node" % address)
    FarEnd(int(address) if kind == "tcp" else address, 0, 1).serve()


if __name__ == "__main__":
    main(sys.argv[1:])
