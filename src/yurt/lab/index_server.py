"""Serves a cluster's package index over HTTP.

Runs as a separate program on a host of the lab, standard library only: `python3 index_server.py ADDRESS PORT FOLDER
PIDFILE`. The PIDFILE exists as soon as the server accepts connections.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer

PROCESS_NAME = "package-index"
NOBODY = 65534


class Handler(SimpleHTTPRequestHandler):
    """Serves files. Clients may cache them, but must ask each time whether they have changed.

    Uses entity tags instead of Last-Modified, which does not notice two changes within a second.
    """

    protocol_version = "HTTP/1.1"

    def send_head(self):  # type: ignore[no-untyped-def] # noqa: ANN201
        if self.headers.get("If-None-Match", "") == self._tag() != "":
            self.send_response(304)
            self.end_headers()
            return None
        return super().send_head()

    def send_header(self, keyword: str, value: str) -> None:
        if keyword != "Last-Modified":
            super().send_header(keyword, value)

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-cache")
        if tag := self._tag():
            self.send_header("ETag", tag)
        super().end_headers()

    def _tag(self) -> str:
        path = Path(self.translate_path(self.path))
        try:
            found = (path / "index.html" if path.is_dir() else path).stat()
        except OSError:
            return ""
        return f'"{found.st_ino:x}-{found.st_mtime_ns:x}"'


class Server(ThreadingTCPServer):
    """Accepts connections as `http.server` does, but without a name lookup at startup."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128


def main(address: str, port: str, folder: str, pidfile: str) -> None:
    with Server((address, int(port)), partial(Handler, directory=folder)) as server:
        Path("/proc/self/comm").write_text(PROCESS_NAME)
        Path(pidfile).write_text(f"{os.getpid()}\n")
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        server.serve_forever(poll_interval=3600)


if __name__ == "__main__":
    main(*sys.argv[1:])
