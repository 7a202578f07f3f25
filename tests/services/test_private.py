"""While services run on a cluster, another user of their node and of the login host reaches none of them.

Every port and socket of these hosts is tried as `bob`. Tokens are searched for on all disks, in Slurm's records and in
what `bob` can see of processes.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.calls import YURT
from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from tests.lifecycle.test_secrets import Search
from yurt.lab import Lab
from yurt.lab.cluster import inside
from yurt.lab.topology import ALICE, BOB

pytestmark = pytest.mark.lab

PACKAGES: list[str] = []
"""Options with which nodes use the packages of this environment."""


@pytest.fixture(autouse=True)
def packages(package_options: list[str]) -> None:
    PACKAGES[:] = package_options


SERVER = """
import http.server, socketserver, sys
class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    def get_request(self):
        return self.socket.accept()[0], ("unix", 0)
Server(sys.argv[1], http.server.SimpleHTTPRequestHandler).serve_forever()
"""

TRY = r"""
import glob, json, os, socket, sys
found = []
def attempt(kind, where, family, style, address):
    with socket.socket(family, style) as probe:
        probe.settimeout(5)
        try:
            probe.connect(address)
            answer = "connected"
        except OSError as error:
            answer = error.strerror or str(error)
    found.append({"kind": kind, "where": where, "answer": answer})
for name, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
    for line in open("/proc/net/" + name).read().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A":
            port = int(fields[1].rpartition(":")[2], 16)
            for host in {"127.0.0.1", socket.gethostname()} if family == socket.AF_INET else {"::1"}:
                attempt("tcp", port, family, socket.SOCK_STREAM, (host, port))
for line in open("/proc/net/unix").read().splitlines()[1:]:
    fields = line.split(None, 7)
    if len(fields) == 8:
        style = {1: socket.SOCK_STREAM, 2: socket.SOCK_DGRAM, 5: socket.SOCK_SEQPACKET}[int(fields[4], 16)]
        path = fields[7]
        for name in {path, path[:-4] if path.endswith(".new") else path}:  # it may have been renamed
            attempt("unix", path, socket.AF_UNIX, style, "\0" + name[1:] if name.startswith("@") else name)
print(json.dumps(found))
"""
"""Tries every port and every socket with a name that this user can see."""

OWNERS = r"""
import glob, json, os
owner = {}
for link in glob.glob("/proc/[0-9]*/fd/*"):
    try:
        target = os.readlink(link)
        process = link.split("/")[2]
        if target.startswith("socket:["):
            user = os.stat("/proc/" + process).st_uid
            owner[target[8:-1]] = (user, open("/proc/%s/comm" % process).read().strip())
    except OSError:
        pass
found = []
for name in ("tcp", "tcp6", "udp", "udp6"):
    for line in open("/proc/net/" + name).read().splitlines()[1:]:
        fields = line.split()
        if name.startswith("udp") or fields[3] == "0A":
            port, program = int(fields[1].rpartition(":")[2], 16), owner.get(fields[9], (0, ""))[1]
            found.append((name[:3], port, int(fields[7]), program))
for line in open("/proc/net/unix").read().splitlines()[1:]:
    fields = line.split(None, 7)
    if len(fields) == 8:
        user, program = owner.get(fields[6], (-1, ""))
        found.append(("unix", fields[7], user, program))
print(json.dumps(found))
"""
"""Lists the ports and the sockets with a name: user and program."""

SYSTEM = {
    "munged": "authenticates users of Slurm; everyone must reach it",
    "sshd": "ssh asks for a key",
    "slurmd": "Slurm checks each request with munge",
    "slurmstepd": "Slurm checks each request with munge; it serves root and the owner of the job",
    "srun": "of Slurm: accepts only messages with the credential of its step",
}
"""Programs that may answer bob, and why."""


class Served:
    """A service that is open on the laptop."""

    def __init__(self, laptop: Laptop, context: str, name: str, *words: str) -> None:
        self.laptop, self.name, self.began = laptop, name, time.time()
        argv = [YURT, "--context", context, "serve", *words]
        options = ["--no-browser", "--on-exit", "stop", "--name", name, "--time", "20m"]
        options += PACKAGES
        at = argv.index("--") if "--" in argv else len(argv)
        self._err = (laptop.home / f"{name}.err").open("w+")
        self.process = subprocess.Popen(
            [*argv[:at], *options, *argv[at:]],
            env={**os.environ, **laptop.environment},
            cwd=laptop.project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._err,
            text=True,
        )
        self.url, self.node, self.run, self.folder = "", "", "", ""

    def opened(self) -> None:
        """Wait until it is open."""
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        assert self.url, self.words
        rows = self.laptop.quick("serve", "list", "--json").json["data"]
        (row,) = [row for row in rows if row["name"] == self.name]
        self.node, self.run = row["node"], row["run"]
        self.folder = self.laptop.quick("show", self.run, "--json").json["data"]["run"]["folder"]

    def ask(self, path: str, method: str = "GET", data: bytes | None = None) -> bytes:
        """Ask with the token of the address."""
        base, token = self.url.split("/?")
        request = urllib.request.Request(f"{base}{path}?{token}", data=data, method=method)
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(request, timeout=60) as answer:
            content: bytes = answer.read()
        return content

    @property
    def words(self) -> str:
        """What it has said to the user."""
        return Path(self._err.name).read_text()

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.wait(120)


def start_kernel(service: Served) -> str:
    """Run a cell in a kernel of Jupyter that prints from itself and from a fork; return what it printed."""
    from websocket import create_connection

    kernel = json.loads(service.ask("/api/kernels", "POST", b"{}"))["id"]
    base, token = service.url.split("/?")
    link = create_connection(f"{base.replace('http', 'ws')}/api/kernels/{kernel}/channels?{token}", timeout=120)
    fork = "if not os.fork():\n    print('fork', flush=True)\n    os._exit(0)\nos.wait()"
    code = f"import os\nprint('cell', 6 * 7, flush=True)\n{fork}"
    content = {"code": code, "silent": False, "store_history": False, "user_expressions": {}, "allow_stdin": False}
    header = {"msg_id": "1", "msg_type": "execute_request", "username": "", "session": "s", "version": "5.3"}
    link.send(
        json.dumps({"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"})
    )
    text, deadline = "", time.monotonic() + 120
    while not ("cell 42" in text and "fork" in text):
        assert time.monotonic() < deadline, text
        message = json.loads(link.recv())
        if message["header"]["msg_type"] == "stream":
            text += message["content"]["text"]
    link.close()
    return text


def start_terminal(service: Served) -> None:
    assert json.loads(service.ask("/api/terminals", "POST", b"{}"))["name"]


class Hosts:
    """Runs programs on hosts of a cluster, as root or bob."""

    def __init__(self, lab: Lab, cluster: str) -> None:
        self._cluster = lab.cluster(cluster)

    def root(self, host: str, *argv: str) -> str:
        command = inside(self._cluster.pid(host), list(argv))
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def bob(self, host: str, *argv: str) -> str:
        user = ["setpriv", f"--reuid={BOB.uid}", f"--regid={BOB.uid}", "--clear-groups"]
        return self.root(host, *user, *argv)

    def check(self, host: str) -> list[dict[str, Any]]:
        """Check that bob reaches nothing of alice; return what he tried."""
        tried = json.loads(self.bob(host, "python3", "-c", TRY))
        owners = json.loads(self.root(host, "python3", "-c", OWNERS))
        of_alice = [each for each in owners if each[2] == ALICE.uid and each[3] != "srun"]
        assert [each for each in of_alice if each[0] != "unix"] == [], "alice has no port"
        assert [each for each in of_alice if str(each[1]).startswith("@")] == [], "nor a socket that has no permissions"
        known = {(each[0], each[1]) for each in owners if each[3] in SYSTEM and each not in of_alice}
        assert [
            each for each in tried if each["answer"] == "connected" and (each["kind"], each["where"]) not in known
        ] == []
        paths = {each[1] for each in of_alice}
        return [each for each in tried if each["where"] in paths]


def kinds(laptop: Laptop) -> list[Served]:
    """Start a service of each kind that starts quickly."""
    (laptop.project / "logs").mkdir()
    (laptop.project / "server.py").write_text(SERVER)
    return [
        Served(laptop, "alpha", "jupyter", "jupyter", "--mem", "1G"),
        Served(laptop, "alpha", "tensorboard", "tensorboard", "--logdir", "/home/alice", "--mem", "1G"),
        Served(laptop, "alpha", "ports", "run", "--", "python3", "-m", "http.server", "{port}"),
        Served(laptop, "alpha", "sockets", "run", "--", "python3", "server.py", "{socket}"),
    ]


@pytest.fixture
def services(laptop: Laptop) -> Iterator[dict[str, Served]]:
    found = kinds(laptop)
    try:
        for each in found:
            each.opened()
        yield {each.name: each for each in found}
    finally:
        for each in found:
            each.end()


def test_nobody_else_reaches_a_service(lab: Lab, laptop: Laptop, services: dict[str, Served]) -> None:
    hosts = Hosts(lab, "alpha")
    search, jupyter = Search(lab, laptop), services["jupyter"]
    search.began = jupyter.began
    start_kernel(jupyter)
    start_terminal(jupyter)
    assert b"Directory listing" in services["ports"].ask("/") and b"Directory listing" in services["sockets"].ask("/")
    assert b"data" in services["tensorboard"].ask("/data/environment")

    refused = []
    for node in {each.node for each in services.values()}:
        refused += hosts.check(node)
    assert {each["answer"] for each in refused} == {"Permission denied"}
    # A kernel has five sockets and one for its forks.
    assert len(refused) >= len(services) + 6, refused
    assert hosts.check("login") == []

    where = {name: json.loads(status(hosts, each)) for name, each in services.items()}
    assert {name: each["way"] for name, each in where.items()} == {
        **dict.fromkeys(services, "socket"),
        "ports": "network",
    }
    token = hosts.root(jupyter.node, "cat", where["jupyter"]["token"])
    assert len(token) == 48
    for each in services.values():
        assert token not in status(hosts, each)
    assert search.on_disks(token.encode()) == []
    private = str(Path(where["jupyter"]["token"]).parent)
    found = "\n".join(search.in_memory(token.encode(), "alpha")).replace(f"{jupyter.node}: ", "").splitlines()
    assert found and all(line.startswith(private) for line in found), found
    assert search.for_others(token.encode(), "alpha") == search.for_root(token.encode(), "alpha") == []
    sacct = ("sacct", "--allusers", "--format=all", "--parsable2")
    records = hosts.root("ctl", "scontrol", "show", "jobs", "--details") + hosts.root("ctl", *sacct)
    assert token not in records and jupyter.run in records
    logs = hosts.root("login", "sh", "-c", 'cat "$1"/*.log "$1"/*.json', "sh", jupyter.folder)
    assert token not in logs and "Jupyter Server" in logs

    for each in services.values():
        with pytest.raises(urllib.error.HTTPError, match="403"):  # another user of this machine
            urllib.request.urlopen(each.url.split("?")[0], timeout=60)
        command = Path(f"/proc/{each.process.pid}/cmdline").read_bytes()
        assert each.url.rpartition("=")[2].encode() not in command


def status(hosts: Hosts, service: Served) -> str:
    return hosts.root("login", "cat", f"{service.folder}/service.json")


LIMITED = """#!/bin/sh
exec unshare -r sh -c 'echo 0 > /proc/sys/user/max_net_namespaces && exec /usr/bin/python3 "$@"' sh "$@"
"""
"""A Python on a node whose kernel lets nobody create a network."""


@pytest.mark.slow  # tests/node/service/test_run.py shows the same on this machine
def test_a_port_that_the_user_opens_is_open(lab: Lab, laptop: Laptop) -> None:
    """A control: what the test above looks for, it finds."""
    hosts, ssh = Hosts(lab, "alpha"), Ssh(lab)
    folder = "/home/alice/limited"
    ssh(
        "alpha",
        f"mkdir -p {folder} && printf %s {shlex.quote(LIMITED)} > {folder}/python3 && chmod 755 {folder}/python3",
    )
    where = ("--var", f"PATH={folder}:/usr/bin:/bin")
    words = ("--", "/usr/bin/python3", "-m", "http.server", "--bind", "127.0.0.1", "{port}")
    closed = Served(laptop, "alpha", "closed", "run", *where, *words)
    made = Served(laptop, "alpha", "opened", "run", "--open-port", *where, *words)
    try:
        assert closed.process.wait(120) == 5
        line = closed.words.splitlines()[-1]
        assert "does not let programs have a network of their own" in line and "--open-port" in line
        made.opened()
        assert b"Directory listing" in made.ask("/")
        assert "every user of n" in made.words and "can reach its port, because you allowed it" in made.words
        with pytest.raises(AssertionError, match="alice has no port"):
            hosts.check(made.node)
        port = json.loads(status(hosts, made))["port"]
        code = "import sys, urllib.request as u; print(u.urlopen('http://127.0.0.1:' + sys.argv[1]).status)"
        assert hosts.bob(made.node, "python3", "-c", code, str(port)).strip() == "200"
    finally:
        made.end()
        closed.end()


@pytest.mark.slow
def test_mlflow(lab: Lab, laptop: Laptop) -> None:
    hosts = Hosts(lab, "alpha")
    Ssh(lab)("alpha", "mkdir -p /home/alice/mlruns")
    made = Served(laptop, "alpha", "mlflow", "mlflow", "--store", "/home/alice/mlruns", "--mem", "2G")
    try:
        made.opened()
        assert b"mlflow" in made.ask("/").lower()
        refused = hosts.check(made.node)
        assert {each["answer"] for each in refused} == {"Permission denied"}
        assert any(each["where"].endswith("/socket") for each in refused)
        assert hosts.check("login") == []
    finally:
        made.end()


@pytest.mark.slow
def test_a_cluster_without_ssh_to_nodes(lab: Lab, laptop: Laptop) -> None:
    hosts = Hosts(lab, "beta")
    made = Served(laptop, "beta", "ports", "run", "--", "python3", "-m", "http.server", "{port}")
    try:
        made.opened()
        assert b"Directory listing" in made.ask("/")
        assert {each["answer"] for each in hosts.check(made.node)} == {"Permission denied"}
        for host in ("login1", "login2"):
            assert hosts.check(host) == []
    finally:
        made.end()
