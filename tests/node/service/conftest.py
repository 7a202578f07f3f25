"""Services on this machine: the program of a service as a process, from the files that are uploaded."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from yurt.backends.job import module
from yurt.lifecycle.plan.holders import START_SERVICE
from yurt.testing.waiting import eventually

PYTHON = os.environ.get("YURT_NODE_PYTHON") or str(Path(sys.executable).resolve())

ECHO = """
import socket, sys, threading
where = sys.argv[1]
if where.startswith("/"):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(where)
else:
    address, port = where.rsplit("@", 1)
    listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    listener.bind((address, int(port)))
listener.listen(200)
def answer(near):
    try:
        while True:
            piece = near.recv(65536)
            if not piece:
                near.sendall(b"end")  # after the other side has sent everything
                break
            near.sendall(piece)
    except OSError:  # the other side is gone
        pass
    near.close()
while True:
    threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()
"""
"""A server that sends back what it gets: `python -c ECHO PATH`, or ADDRESS@PORT."""


class Connection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=60)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self._path)


class ServiceProcess:
    """One start of the program of a service. `before` are words in front of its command."""

    def __init__(
        self, shipped: Path, top: Path, config: dict[str, Any], *, before: Sequence[str] = (), python: str = PYTHON
    ) -> None:
        self._began = time.time()
        self.run = top / "run"
        self.run.mkdir(exist_ok=True)
        self.err = self.run / "err.log"
        self._environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(top),
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
            "YURT_RUN_DIR": str(self.run),
            "YURT_SERVICE": json.dumps({"words": [], "folder": "", "links": {}, "open": False, **config}),
            **config.pop("variables", {}),
        }
        with self.err.open("ab") as err:
            self.process = subprocess.Popen(
                [*before, python, "-I", "-S", "-c", START_SERVICE, str(shipped)],
                env=self._environment,
                cwd=top,
                stdin=subprocess.DEVNULL,
                stdout=err,
                stderr=err,
                start_new_session=True,
            )

    @property
    def status(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((self.run / "service.json").read_text())
        except FileNotFoundError:
            return {}
        return found

    @property
    def words(self) -> str:
        """What it has written to its log."""
        return self.err.read_text()

    def ready(self) -> dict[str, Any]:
        """Wait until the program listens; return the status."""

        def is_ready() -> bool:  # it may have been started before, in the same run folder
            return self.status.get("phase") == "ready" and self.status["start"] >= self._began

        eventually(lambda: is_ready() or self.process.poll() is not None)
        assert is_ready(), (self.status, self.words)
        return self.status

    def get(self, path: str, method: str = "GET", body: bytes = b"", token: str = "") -> tuple[int, bytes]:
        connection = Connection(self.status["socket"])
        connection.request(method, path, body, {"Authorization": f"token {token}"} if token else {})
        answer = connection.getresponse()
        return answer.status, answer.read()

    def connect(self) -> socket.socket:
        made = socket.socket(socket.AF_UNIX)
        made.settimeout(60)
        made.connect(self.status["socket"])
        return made

    def end(self) -> int:
        """End it; return its exit code. Its private folder is gone."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def processes(self) -> list[int]:
        """Return the living processes of this service."""
        mark = b"YURT_RUN_DIR=" + os.fsencode(self.run) + b"\0"
        found = []
        for each in Path("/proc").iterdir():
            try:
                if each.name.isdigit() and mark in (each / "environ").read_bytes():
                    found.append(int(each.name))
            except OSError:  # it has ended
                continue
        return found


class Start:
    """Starts services."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.started: list[ServiceProcess] = []
        self.shipped = top / "node"
        for name, content in module.files("service").items():
            file = self.shipped / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)

    def __call__(self, program: str = "command", **config: Any) -> ServiceProcess:
        more = {name: config.pop(name) for name in ("before", "python") if name in config}
        made = ServiceProcess(self.shipped, self.top, {"program": program, **config}, **more)
        self.started.append(made)
        return made

    def echo(self, where: str, **config: Any) -> ServiceProcess:
        return self(words=[sys.executable, "-c", ECHO, where], **config)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    made = Start(tmp_path)
    yield made
    for each in made.started:
        each.end()
    for each in made.started:
        for left in each.processes():
            os.kill(left, signal.SIGKILL)
