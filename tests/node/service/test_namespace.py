"""A network of its own: the port is not there for others, and connections pass unchanged."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.node.service.conftest import ServiceProcess, Start
from yurt.node.service import namespace
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux, for its namespaces")

LARGE = 8 << 20


def exchange(made: ServiceProcess, content: bytes) -> bytes:
    """Send bytes while the answer is read, end one direction, and read the rest."""
    with made.connect() as one:

        def send() -> None:
            one.sendall(content)
            one.shutdown(socket.SHUT_WR)

        sender = threading.Thread(target=send)
        sender.start()
        got = bytearray()
        while piece := one.recv(1 << 16):
            got += piece
        sender.join()
    return bytes(got)


def listening(where: str = "self") -> set[str]:
    """Return the local addresses of the TCP ports that listen in the network of a process."""
    rows = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/{where}/net/{name}").read_text().splitlines()[1:]
    ]
    return {row[1] for row in rows if row[3] == "0A"}


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::1", "::"])
def test_any_address_is_reached_and_no_port_is_open(start: Start, address: str) -> None:
    made = start.echo(f"{address}@{{port}}")
    before = listening()
    folder = Path(made.ready()["socket"]).parent
    assert exchange(made, b"hello") == b"helloend"
    assert sorted(each.name for each in folder.iterdir()) == ["lock", "socket"], (
        "the socket appears under its name once it can be used"
    )
    assert (folder / "socket").stat().st_mode & 0o777 == 0o600
    port = f":{namespace.PORT:04X}"
    inside = [each for each in made.processes() if any(one.endswith(port) for one in listening(str(each)))]
    assert inside and not any(one.endswith(port) for one in listening() - before)


def test_large_bodies_and_many_connections(start: Start) -> None:
    made = start.echo("127.0.0.1@{port}")
    made.ready()
    large = os.urandom(1 << 16) * (LARGE >> 16)
    assert exchange(made, large) == large + b"end"
    idle = [made.connect() for _each in range(60)]
    with ThreadPoolExecutor(20) as pool:
        assert set(pool.map(lambda number: exchange(made, b"%d" % number) == b"%dend" % number, range(120))) == {True}
    for each in idle:
        each.close()


def test_more_connections_than_files(start: Start) -> None:
    """The limit of open files is reached; when connections end, the service answers again."""
    made = start.echo("127.0.0.1@{port}", before=("sh", "-c", 'ulimit -n 40; exec "$@"', "sh"))
    made.ready()
    idle = [made.connect() for _each in range(60)]
    for each in idle:
        each.close()

    def answers() -> bool:
        try:
            return exchange(made, b"x") == b"xend"
        except OSError:
            return False

    eventually(answers)
    assert made.status["phase"] == "ready"


def test_a_connection_that_breaks_ends_the_other_side(start: Start) -> None:
    made = start.echo("127.0.0.1@{port}")
    made.ready()
    one = made.connect()
    one.sendall(b"x" * 1000)
    one.close()  # with bytes that nobody has read
    assert exchange(made, b"next") == b"nextend"


def test_the_program_reaches_only_itself(start: Start) -> None:
    """Also sockets with abstract names, which have no permissions, belong to its network."""
    script = (
        "import http.server, os, socket, sys\n"
        "name = 'yurt-test-%d' % os.getpid()\n"
        "abstract = socket.socket(socket.AF_UNIX); abstract.bind('\\0' + name); abstract.listen(1)\n"
        "open('name', 'w').write(name)\n"
        "http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), http.server.SimpleHTTPRequestHandler).serve_forever()"
    )
    made = start(words=[sys.executable, "-c", script, "{port}"])
    made.ready()
    assert made.get("/name")[0] == 200
    name = (start.top / "name").read_text()
    with socket.socket(socket.AF_UNIX) as other, pytest.raises(ConnectionRefusedError):
        other.connect(f"\0{name}")
    assert name not in Path("/proc/net/unix").read_text()


def test_is_allowed() -> None:
    code = "import sys; sys.path.insert(0, sys.argv[1]); from yurt.node.service import namespace as n; "
    code += "print(n.is_allowed())"
    source = str(Path(namespace.__file__).parents[3])
    limit = "echo 0 > /proc/sys/user/max_user_namespaces"
    for before, expected in (("true", "True"), (limit, "False")):
        argv = ["unshare", "-r", "sh", "-c", f'{before} && exec "$@"', "sh", sys.executable, "-c", code, source]
        assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip() == expected
