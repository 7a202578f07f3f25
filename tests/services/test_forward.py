"""forward: a program on the loopback of a node, reached from this machine."""

from __future__ import annotations

import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.calls import YURT
from tests.laptop import Laptop
from tests.user import User, said
from yurt.lab import Lab
from yurt.testing.waiting import eventually

SERVES = """\
import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(os.environ["YURT_RUN_ID"].encode() + b" " * 100000)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


@contextmanager
def forwarded(user: User, run: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Forward to the port that a run has printed; yield the process and the address."""
    eventually(lambda: user.quick("logs", run).out.strip().isdigit(), pause=0.3)
    port = user.quick("logs", run).out.strip()
    process = subprocess.Popen(
        [YURT, "forward", f"{run}:{port}"],
        env={"PATH": "/usr/bin:/bin", **user.environment},
        cwd=user.project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "leads to port" in line, process.communicate()
        yield process, f"http://{line.split()[0]}/"
    finally:
        process.kill()
        process.communicate()


def get(address: str) -> str:
    with urllib.request.urlopen(address, timeout=60) as answer:
        return str(answer.read().strip(), "utf8")


def test_a_program_of_this_machine(user: User) -> None:
    (user.project / "serve.py").write_text(SERVES)
    run = user.quick("run", "--json", "serve.py").json["data"]["run"]["id"]
    with forwarded(user, run) as (process, address):
        assert [get(address) for _time in range(5)] == [run] * 5
        assert user.quick("cancel", run).code == 0
        _out, err = process.communicate(timeout=60)
        assert process.returncode == 0 and f"run {run} has ended" in err


@pytest.mark.lab
@pytest.mark.parametrize("name", ["alpha", "beta"])
def test_a_program_on_a_node(laptop: Laptop, lab: Lab, name: str) -> None:
    (laptop.project / "serve.py").write_text(SERVES)
    run = laptop.run(name, "python3", "serve.py")["run"]["id"]
    with forwarded(laptop, run) as (_process, address):
        assert get(address) == run
        lab.faults.cut(name)
        lab.faults.heal(name)
        eventually(lambda: _answers(address, run))
    assert laptop.quick("cancel", run).code == 0


def _answers(address: str, run: str) -> bool:
    try:
        return get(address) == run
    except OSError:
        return False


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["8080"], 2, "'8080' is not RUN:PORT"),
        (["@last:99999"], 2, "'@last:99999' is not RUN:PORT"),
        (["@last:8080"], 3, "there are no runs yet"),
        (["@last:8080", "--local", "99999"], 2, "--local must be a port up to 65535"),
    ],
)
def test_refused(user: User, words: list[str], code: int, text: str) -> None:
    assert text in said(user.quick("forward", *words), code)


def test_a_newer_run_of_the_same_name_has_ended(user: User) -> None:
    made = user.quick("run", "--json", "--name", "web", "sleep", "300").json["data"]["run"]["id"]
    try:
        assert user.quick("run", "--wait", "--name", "web", "false").code == 1
        eventually(lambda: user.quick("shell", "web", "--", "true").code == 0)
        assert user.quick("shell", "web", "--", "sh", "-c", 'test "$YURT_RUN_ID" = "$0"', made).code == 0
    finally:
        assert user.quick("cancel", made).code == 0


def test_a_finished_run(user: User) -> None:
    run = user.quick("run", "--json", "--wait", "true").json["data"]["run"]["id"]
    assert f"run {run} is not running: it is completed" in said(user.quick("forward", f"{run}:80"), 5)
