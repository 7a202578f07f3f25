"""How long a page of 60 files takes through `yurt serve`, next to `ssh -L` through the login node.

A server on a compute node of alpha listens on a unix socket. Its files are program text, as those of JupyterLab are.
Both ways are open at once, and the page is loaded in turns, with six connections that stay open, as a browser does:
first with the fast link of the lab, then with one of 10 ms each way.
"""

from __future__ import annotations

import http.client
import json
import os
import queue
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.figures import Figure, table
from benchmarks.side_by_side import YURT, Bench, alpha

SIZES = [2_000_000, *[200_000] * 5, *[5_000 + 1_000 * (n % 26) for n in range(54)]]
"""The bytes of each file of the page: 3.9 MB."""

CONNECTIONS, ROUNDS, DELAY = 6, 15, 10

SERVER = """\
import glob, http.server, os, socketserver, sys
os.umask(0o177)
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    content = b"".join(open(each, "rb").read() for each in sorted(glob.glob("/usr/lib/python3*/*.py")))[:2_000_000]
    def address_string(self):
        return ""
    def log_message(self, *words):
        pass
    def do_GET(self):
        size = int(self.path[1:])
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        self.wfile.write(self.content[:size])
class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64
Server(sys.argv[1], Handler).serve_forever()
"""


def load(port: int, headers: dict[str, str]) -> float:
    """Load the page; return the seconds."""
    wanted: queue.SimpleQueue[int] = queue.SimpleQueue()
    for size in SIZES:
        wanted.put(size)
    faults: list[str] = []

    def work() -> None:
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while True:
            try:
                size = wanted.get_nowait()
            except queue.Empty:
                break
            try:
                link.request("GET", f"/{size}", headers=headers)
                answer = link.getresponse()
                if answer.status != 200 or len(answer.read()) != size:
                    faults.append(f"{size}: {answer.status}")
            except (OSError, http.client.HTTPException) as error:
                faults.append(f"{size}: {error!r}")
        link.close()

    threads = [threading.Thread(target=work) for _each in range(CONNECTIONS)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - began
    if faults:
        raise RuntimeError(f"{len(faults)} requests failed: {faults[:3]}")
    return took


@contextmanager
def served(bench: Bench, folder: Path) -> Iterator[tuple[int, dict[str, str], dict[str, str]]]:
    """Open the service with yurt; yield the port of this machine, the headers to send, and the service."""
    words = ["serve", "--context", "alpha", "--no-browser", "--on-exit", "keep", "--json", "--name", "page"]
    process = subprocess.Popen(
        [YURT, *words, "--", "python3", "server.py", "{socket}"],
        cwd=folder,
        env=bench.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        service = json.loads(process.stdout.readline())["data"]
        port = int(service["url"].split(":")[2].split("/")[0])
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        link.request("GET", "/?" + service["url"].partition("?")[2])
        answer = link.getresponse()
        answer.read()
        yield port, {"Cookie": (answer.getheader("Set-Cookie") or "").partition(";")[0]}, service
    finally:
        process.terminate()
        process.communicate()


@contextmanager
def forwarded(bench: Bench, node: str, path: str) -> Iterator[int]:
    """Forward a port of this machine to the socket by ssh through the login node."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = ["-N", "-L", f"127.0.0.1:{port}:{path}", f"alpha-{node}"]
    process = subprocess.Popen([*bench.ssh, *words], stdin=subprocess.DEVNULL)
    try:
        for _time in range(300):
            if process.poll() is not None:
                raise RuntimeError("ssh -L has ended")
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait()


def measure(bench: Bench, folder: Path) -> tuple[float, float]:
    """Return the median seconds of the page, through yurt and through ssh -L."""
    with served(bench, folder) as (port, headers, service):
        show = json.loads(bench.call([YURT, "show", "--json", service["run"]]))["data"]
        text = bench.call([*bench.ssh, "alpha", f"cat {show['run']['folder']}/service.json"])
        with forwarded(bench, service["node"], json.loads(text)["socket"]) as plain:
            ours, theirs = [], []
            for number in range(ROUNDS + 2):
                one, other = load(port, headers), load(plain, {})
                if number > 1:
                    ours.append(one)
                    theirs.append(other)
    return statistics.median(ours), statistics.median(theirs)


def main() -> int:
    if os.geteuid() != 0 or not Path("/proc/self/stat").exists():
        print("serve: SKIPPED: the lab needs root")
        return 0
    figures = []
    with alpha() as bench:
        folder = bench.home / "project"
        folder.mkdir()
        (folder / "server.py").write_text(SERVER)
        for delay in (0, DELAY):
            if delay:
                subprocess.run(
                    [YURT, "login", "--close", "alpha"], env=bench.environment, capture_output=True, check=False
                )
                bench.call([YURT, "lab", "fault", "delay", "alpha", "--ms", str(delay)])
            ours, theirs = measure(bench, folder)
            print(f"serve: {delay} ms each way: {ours * 1000:.0f} ms, by ssh -L {theirs * 1000:.0f} ms", flush=True)
            figures.append(Figure(f"60 files, {delay} ms each way, relative to ssh -L", ours / theirs, 1.5))
        bench.call([YURT, "serve", "stop", "page"])
    return table("a page of 60 files, 3.9 MB", figures)


if __name__ == "__main__":
    sys.exit(main())
