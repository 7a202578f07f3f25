"""A running `yurt serve` for tests: its URL, what it printed, and what it has left on this machine."""

from __future__ import annotations

import http.cookiejar
import json
import os
import signal
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from tests.calls import YURT
from tests.laptop import Laptop
from tests.user import User
from yurt.lab import Lab
from yurt.model.run import FINAL

APP = """\
import os, socket, sys, threading
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen(50)
print("app listens", flush=True)
def answer(link):
    with link:
        if not link.recv(65536):  # only a test whether it listens
            return
        body = b"%d %b" % (os.getpid(), os.environ["YURT_RUN_ID"].encode())
        link.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n%b" % (len(body), body))
while True:
    link, _where = server.accept()
    threading.Thread(target=answer, args=(link,), daemon=True).start()
"""
"""Listens on a unix socket, and responds with its pid and its run."""

COMMAND = ("--", "python3", "app.py", "{socket}")


class Client:
    """One `yurt serve`, without a terminal."""

    def __init__(self, user: User, words: tuple[str, ...], **environment: str) -> None:
        self._errors: IO[str] = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(
            [YURT, "serve", *words],
            env={**os.environ, **user.environment, **environment},
            cwd=user.project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,
        )
        self._web = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
        self.url = ""

    def opened(self) -> str:
        """Wait until it has printed its URL, and return that."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        assert line, self.err
        self.url = json.loads(line)["data"]["url"] if line.startswith("{") else line
        return self.url

    @property
    def err(self) -> str:
        self._errors.seek(0)
        return self._errors.read()

    def get(self, path: str = "", seconds: float = 60) -> str:
        """Return an answer of the service."""
        base, _question, query = self.url.partition("?")
        with self._web.open(f"{base}{path}?{query}", timeout=seconds) as answer:
            return str(answer.read(), "utf8")

    def answers(self, seconds: float = 5) -> bool:
        try:
            return bool(self.get(seconds=seconds))
        except OSError:
            return False

    def end(self, number: int = signal.SIGINT) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(90)


@contextmanager
def client(user: User, *words: str, opens: bool = True, **environment: str) -> Iterator[Client]:
    """Run `yurt serve` in the project of a user."""
    (user.project / "app.py").write_text(APP)
    made = Client(user, words, **environment)
    try:
        if opens:
            made.opened()
        yield made
    finally:
        if made.process.poll() is None:
            made.end(signal.SIGKILL)
        assert made.process.stdout is not None
        made.process.stdout.close()


def services(user: User, *words: str) -> list[dict[str, Any]]:
    """Return what `yurt serve list` says."""
    found: list[dict[str, Any]] = user.quick("serve", "list", "--json", *words).json["data"]
    return found


@contextmanager
def link_cut(lab: Lab, name: str) -> Iterator[None]:
    """Cut the link to a cluster, and heal it, also after a test that fails."""
    lab.faults.cut(name)
    try:
        yield
    finally:
        lab.faults.heal(name)


def end_runs(laptop: Laptop) -> None:
    """Cancel the unfinished runs of a laptop, and wait until their jobs have left the queue of the lab."""
    rows = laptop.quick("ps", "--json").json["data"]
    own = [row["id"] for row in rows if row["state"] not in FINAL]
    if own:
        laptop.quick("cancel", *own)
        laptop.quick("wait", *own, "--timeout", "120")


def processes(user: User) -> dict[int, str]:
    """Return the processes of a user's yurt on this machine and their arguments, without shared ssh connections."""
    mark = f"={user.home}/".encode()
    found = {}
    for each in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has just ended
            if mark in (each / "environ").read_bytes():
                found[int(each.name)] = (each / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return {pid: words for pid, words in found.items() if " -M " not in words}


def left(user: User) -> list[str]:
    """Return what services have left on this machine: processes and their folders.

    The folder of a page whose client was killed is removed by the next one.
    """
    found = list(processes(user).values())
    for file in user.home.glob("data/projects/*/runs/*/service.json"):
        place = Path(json.loads(file.read_bytes()).get("socket") or "/nothing/socket").parent
        found += [str(place)] if place.exists() else []
    return found
