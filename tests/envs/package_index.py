"""A package index over HTTP that asks for a password, records requests and can cut a download short."""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

USER, PASSWORD = "ada", "s3cret"


class Index:
    """Serves the files of a folder by PEP 503. `cut` is how many downloads end too early."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.cut = folder, 0
        self.open = f"http://127.0.0.1:{port}/simple"
        self.address = f"http://{USER}:{PASSWORD}@127.0.0.1:{port}/simple"
        self.downloads: list[str] = []
        self.requests: list[str] = []
        """The paths of all requests, with their login."""

    def page(self, name: str) -> str:
        files = [file for file in self.folder.iterdir() if file.name.split("-")[0].lower() == name]
        sums = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
        return "".join(f'<a href="/files/{file}#sha256={sum}">{file}</a>\n' for file, sum in sums.items())


@contextmanager
def serving(folder: Path) -> Iterator[Index]:
    """Serve a folder while the context is open."""
    allowed = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            index.requests.append(f"{self.path} {self.headers.get('Authorization', '')}".strip())
            if self.headers.get("Authorization") != allowed:
                self.send_response(401)
                self.send_header("WWW-Authenticate", "Basic")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            parts = self.path.strip("/").split("/")
            file = index.folder / parts[-1]
            if parts[0] == "files" and file.is_file():
                index.downloads += [file.name] * (self.command == "GET")
                self.answer(file.read_bytes(), "application/octet-stream")
            elif parts[0] == "simple" and index.page(parts[-1]):
                self.answer(index.page(parts[-1]).encode(), "text/html")
            else:
                self.send_error(404)

        def answer(self, content: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if kind != "text/html" and index.cut and self.command == "GET":
                index.cut -= 1
                content = content[: len(content) // 2]
            if self.command == "GET":
                self.wfile.write(content)
            self.close_connection = True

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    index = Index(folder, server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield index
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
