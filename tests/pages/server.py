"""A small web server on a unix socket, for tests of the front."""

from __future__ import annotations

import http.server
import json
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers with what it got; see `do_GET` for the paths."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/socket":
            self._echo()
        elif path == "/stream":
            self._stream()
        elif path == "/until-end":
            self.send_response(200)
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(b"until the end")
        elif path == "/short":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"short")
            self.close_connection = True
        elif path == "/nothing":
            self.close_connection = True
        elif path == "/cookie":
            self._send(b"", ("Set-Cookie", "mine=1"), ("Keep-Alive", "timeout=5"))
        else:
            self._answer(b"")

    do_HEAD = do_GET

    def do_POST(self) -> None:
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if self.path == "/back":
            self._send(body)
        else:
            self._answer(body)

    def _answer(self, body: bytes) -> None:
        got = {"method": self.command, "path": self.path, "headers": self.headers.items(), "size": len(body)}
        self._send(json.dumps(got).encode())

    def _send(self, body: bytes, *headers: tuple[str, str]) -> None:
        self.send_response(200)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _stream(self) -> None:
        """Send one chunk, and the second when the file `go` beside the socket exists."""
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"5\r\nfirst\r\n")
        self.wfile.flush()
        assert isinstance(self.server, Server)
        self.server.go.wait(30)
        self.wfile.write(b"6\r\nsecond\r\n0\r\n\r\n")

    def _echo(self) -> None:
        assert self.headers["Upgrade"] == "websocket"
        self.send_response(101)
        self.send_header("Connection", "Upgrade")
        self.send_header("Upgrade", "websocket")
        self.end_headers()
        self.wfile.flush()
        while piece := self.connection.recv(1 << 16):
            self.connection.sendall(piece)
        self.close_connection = True

    def address_string(self) -> str:
        return "unix"

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), Handler)
        self.go = threading.Event()
        self._open: list[socket.socket] = []

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.append(request)
        super().process_request(request, client_address)

    def end(self) -> None:
        """End as a program does: with its connections."""
        self.shutdown()
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # tests close connections early


@contextmanager
def serving(path: Path) -> Iterator[Server]:
    """Serve on a socket."""
    with Server(path) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server
        server.go.set()
        server.end()
