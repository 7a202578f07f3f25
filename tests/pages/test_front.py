"""The front: who is let in, and what reaches the server behind it. A real server on a unix socket, raw requests."""

from __future__ import annotations

import json
import os
import re
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.pages.server import Server, serving
from yurt.pages import front as fronts
from yurt.pages.front import Front
from yurt.testing.waiting import eventually


@pytest.fixture
def path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="yurt-") as folder:  # the path of a socket must be short
        yield Path(folder) / "s"


@pytest.fixture
def server(path: Path) -> Iterator[Server]:
    with serving(path) as made:
        yield made


@pytest.fixture
def front(path: Path, server: Server) -> Iterator[Front]:
    with Front(path, "TensorBoard") as made:
        yield made


class Client:
    """One connection to a front."""

    def __init__(self, front: Front) -> None:
        self.front = front
        self.socket = socket.create_connection(("127.0.0.1", front.port), timeout=20)
        self.file = self.socket.makefile("rb")

    def send(self, text: str | bytes) -> None:
        self.socket.sendall(text if isinstance(text, bytes) else text.encode("latin-1"))

    def ask(self, first: str, *lines: str, host: str = "127.0.0.1:{port}", body: bytes = b"") -> Answer:
        named = [f"Host: {host.format(port=self.front.port)}"] if host else []
        self.send("".join(f"{line}\r\n" for line in [first, *named, *lines, ""]).encode("latin-1") + body)
        return self.answer(bare=first.startswith("HEAD"))

    def answer(self, *, bare: bool = False) -> Answer:
        status = self.file.readline().decode().split()
        headers: dict[str, str] = {}
        while line := self.file.readline().decode().strip():
            name, _colon, value = line.partition(":")
            headers[name.lower()] = value.strip()
        body = b""
        if headers.get("transfer-encoding") == "chunked":
            while size := int(self.file.readline(), 16):
                body += self.file.read(size)
                self.file.readline()
            self.file.readline()
        elif not bare and "content-length" in headers:
            body = self.file.read(int(headers["content-length"]))
        elif not bare and len(status) > 1 and status[1] not in ("100", "101"):
            body = self.file.read()
        return Answer(int(status[1]) if len(status) > 1 else 0, headers, body)

    def ended(self) -> bool:
        return self.file.read() == b""


class Answer:
    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body

    @property
    def seen(self) -> dict[str, Any]:
        """What the server got."""
        found: dict[str, Any] = json.loads(self.body)
        found["headers"] = {name.lower(): value for name, value in found["headers"]}
        return found

    @property
    def sentence(self) -> str:
        found = re.search("<p>(.*)</p>", self.body.decode())
        return found[1] if found else ""


def token(front: Front) -> str:
    return front.url.partition("token=")[2]


def cookie(front: Front) -> str:
    """Enter, and return the header with the cookie."""
    entered = Client(front).ask(f"GET /?token={token(front)} HTTP/1.1")
    return "Cookie: " + entered.headers["set-cookie"].partition(";")[0]


def test_the_token_is_exchanged_for_a_cookie(front: Front) -> None:
    entered = Client(front).ask(f"GET /a?x=1&token={token(front)}&y=2 HTTP/1.1")
    assert entered.status == 303 and entered.headers["location"] == "/a?x=1&y=2"
    kept = entered.headers["set-cookie"]
    assert "HttpOnly" in kept and "SameSite=Strict" in kept and str(front.port) in kept
    assert token(front) not in kept
    again = Client(front).ask("GET /a?x=1 HTTP/1.1", f"Cookie: a=b; {kept.partition(';')[0]}; yurt-page-1=z; c=d")
    assert again.status == 200 and again.seen["path"] == "/a?x=1"
    assert again.seen["headers"]["cookie"] == "a=b; c=d"
    only = Client(front).ask("GET / HTTP/1.1", cookie(front)).seen
    assert "cookie" not in only["headers"]


def test_settings_for_the_browser_come_with_the_cookie(tmp_path: Path) -> None:
    with Front(tmp_path / "none", "the server", settings={"a": '{"b":"</script>"}'}) as front:
        entered = Client(front).ask(f"GET /a?token={token(front)} HTTP/1.1")
        assert entered.status == 200 and "set-cookie" in entered.headers
        assert b'content="0;url=/a"' in entered.body and entered.body.count(b"</script>") == 1
        assert json.loads(entered.body.partition(b"entries(")[2].partition(b"))")[0]) == {"a": '{"b":"</script>"}'}


def test_after_a_link_of_another_page_the_browser_gets_a_page_that_opens_it(front: Front) -> None:
    lines = ("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document")
    entered = Client(front).ask(f"GET /a?token={token(front)}&x=%22 HTTP/1.1", *lines)
    assert entered.status == 200 and "set-cookie" in entered.headers
    assert b'content="0;url=/a?x=%22"' in entered.body


def test_a_redirect_stays_on_this_host(front: Front) -> None:
    for path in ("//evil.example/", "/\\evil.example/", "///evil.example/"):
        entered = Client(front).ask(f"GET {path}?token={token(front)} HTTP/1.1")
        assert entered.headers["location"] == "/evil.example/"


def test_a_post_with_the_token_is_forwarded_without_it(front: Front) -> None:
    answer = Client(front).ask(f"POST /x?token={token(front)} HTTP/1.1", "Content-Length: 2", body=b"hi")
    assert answer.status == 200 and answer.seen["path"] == "/x" and answer.seen["size"] == 2


@pytest.mark.parametrize("kind", ["token", "Bearer"])
def test_the_token_in_a_header(front: Front, kind: str) -> None:
    """As editors send it to a Jupyter server. The server behind does not get it."""
    answer = Client(front).ask("GET /x HTTP/1.1", f"Authorization: {kind} {token(front)}")
    assert answer.status == 200 and answer.seen["path"] == "/x" and token(front).encode() not in answer.body
    for wrong in (
        f"Authorization: {kind} wrong",
        f"Authorization: {token(front)}",
        f"Authorization: Basic {token(front)}",
    ):
        assert Client(front).ask("GET /x HTTP/1.1", wrong).status == 403
    own = Client(front).ask("GET /x HTTP/1.1", cookie(front), "Authorization: Basic own")
    assert "Basic own" in own.body.decode()


def test_a_token_of_the_server_itself_is_forwarded(front: Front) -> None:
    assert Client(front).ask("GET /x?token=own HTTP/1.1", cookie(front)).seen["path"] == "/x?token=own"


@pytest.mark.parametrize("query", ["", "?token=", "?token=wrong", "?token=%ff", "?tokens=x", "?token"])
def test_without_the_token_nothing_passes(front: Front, query: str) -> None:
    answer = Client(front).ask(f"GET /{query} HTTP/1.1")
    assert answer.status == 403 and answer.sentence.endswith("open the complete address that yurt printed.")
    assert "set-cookie" not in answer.headers


def test_the_cookie_of_another_page_does_not_pass(front: Front, path: Path) -> None:
    with Front(path, "MLflow") as other:
        value = cookie(other)
        assert Client(front).ask("GET / HTTP/1.1", value).status == 403
        renamed = value.replace(str(other.port), str(front.port))
        assert Client(front).ask("GET / HTTP/1.1", renamed).status == 403
        assert Client(other).ask("GET / HTTP/1.1", value).status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.nip.io"]
)
def test_a_foreign_host_does_not_pass(front: Front, host: str) -> None:
    assert Client(front).ask(f"GET /?token={token(front)} HTTP/1.1", host=host).status == 403
    assert Client(front).ask("GET / HTTP/1.1", cookie(front), host=host).status == 403


def test_hosts_of_this_machine_pass(front: Front) -> None:
    for host in ("127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}"):
        assert Client(front).ask("GET / HTTP/1.1", cookie(front), host=host).status == 200
    assert Client(front).ask("GET / HTTP/1.1", cookie(front), host="").status == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:{port}"])
def test_a_foreign_origin_does_not_pass(front: Front, origin: str) -> None:
    line = f"Origin: {origin.format(port=front.port)}"
    assert Client(front).ask("POST / HTTP/1.1", line, cookie(front), "Content-Length: 0").status == 403
    own = f"Origin: http://127.0.0.1:{front.port}"
    assert Client(front).ask("POST / HTTP/1.1", own, cookie(front), "Content-Length: 0").status == 200


def test_other_pages_do_not_embed_it_but_may_link_to_it(front: Front) -> None:
    """A page on another port is the same site for a browser, and sends the cookie along."""
    has = cookie(front)
    for site, mode, dest, status in (
        ("same-site", "no-cors", "image", 403),
        ("cross-site", "navigate", "iframe", 403),
        ("same-site", "navigate", "document", 200),
        ("same-origin", "cors", "empty", 200),
        ("none", "navigate", "document", 200),
    ):
        lines = (f"Sec-Fetch-Site: {site}", f"Sec-Fetch-Mode: {mode}", f"Sec-Fetch-Dest: {dest}")
        assert Client(front).ask("GET / HTTP/1.1", has, *lines).status == status, site


SMUGGLED = [
    ["Content-Length: 5", "Content-Length: 6"],
    ["Content-Length: 5", "Content-Length: 5"],
    ["Content-Length: 5, 5"],
    ["Content-Length: +5"],
    ["Content-Length: 0x5"],
    ["Content-Length: 5", "Transfer-Encoding: chunked"],
    ["Transfer-Encoding: chunked", "Transfer-Encoding: identity"],
    ["Transfer-Encoding: gzip, chunked"],
    ["Transfer-Encoding : chunked"],
    ["Transfer-Encoding: \x0bchunked"],
    [" folded"],
    ["X: a\nTransfer-Encoding: chunked"],
    ["X: a\x00b"],
    ["no colon"],
    ["Host: evil.example"],
    ["Origin: http://evil.example", "Origin: http://127.0.0.1"],
]


@pytest.mark.parametrize("lines", SMUGGLED, ids=range(len(SMUGGLED)))
def test_an_ambiguous_request_is_refused(front: Front, lines: list[str]) -> None:
    client = Client(front)
    answer = client.ask("POST / HTTP/1.1", cookie(front), *lines, body=b"0\r\n\r\nGET /next HTTP/1.1\r\n\r\n")
    assert answer.status == 400 and answer.sentence.startswith("This request is not valid: "), answer.body


@pytest.mark.parametrize(
    "first", ["GET / HTTP/2.0", "GET  / HTTP/1.1", "GET http://evil.example/ HTTP/1.1", "get / HTTP/1.1", "GET /", "x"]
)
def test_an_invalid_first_line_is_refused(front: Front, first: str) -> None:
    assert Client(front).ask(first, cookie(front)).status == 400


def test_wrong_chunks_do_not_reach_the_server_as_a_whole_body(front: Front) -> None:
    for body in (b"5\r\nabcdefg\r\n0\r\n\r\n", b"-5\r\nabcde\r\n0\r\n\r\n", b"5\nabcde\r\n0\r\n\r\n", b"z\r\n\r\n"):
        client = Client(front)
        assert client.ask("POST / HTTP/1.1", cookie(front), "Transfer-Encoding: chunked", body=body).status == 502
        assert client.ended()


def test_old_clients_get_the_whole_answer(front: Front, server: Server) -> None:
    client = Client(front)
    assert client.ask("GET / HTTP/1.0", cookie(front)).status == 200
    assert client.ended()
    server.go.set()
    streamed = Client(front).ask("GET /stream HTTP/1.0", cookie(front))
    assert streamed.body == b"firstsecond" and "transfer-encoding" not in streamed.headers


def test_a_connection_serves_several_requests(front: Front, server: Server) -> None:
    client, has = Client(front), cookie(front)
    for number in range(3):
        assert client.ask(f"GET /{number} HTTP/1.1", has).seen["path"] == f"/{number}"
    assert client.ask("HEAD / HTTP/1.1", has).body == b""
    one = "GET /{} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{}\r\n\r\n"
    client.send("".join(one.format(number, front.port, has) for number in range(3)))
    assert [client.answer().seen["path"] for _each in range(3)] == ["/0", "/1", "/2"]
    assert client.ask("POST / HTTP/1.1", has, "Content-Length: 3", body=b"abc").seen["size"] == 3
    assert client.ask("GET / HTTP/1.1", has, "Connection: close").headers["connection"] == "close"
    assert client.ended()


def test_large_bodies_pass_both_ways(front: Front) -> None:
    body = os.urandom(3 << 20)
    has = cookie(front)
    client = Client(front)
    sent = threading.Thread(
        target=client.send,
        args=(
            f"POST /back HTTP/1.1\r\nHost: 127.0.0.1:{front.port}\r\n{has}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body,
        ),
    )
    sent.start()
    assert client.answer().body == body
    sent.join()
    chunks = b"".join(b"%x;x=y\r\n%b\r\n" % (len(part), part) for part in (body[:100_000], body[100_000:200_000]))
    back = Client(front).ask(
        "POST /back HTTP/1.1", has, "Transfer-Encoding: chunked", body=chunks + b"0\r\nTrailer: x\r\n\r\n"
    )
    assert back.body == body[:200_000]


def test_a_client_may_ask_before_it_sends_a_body(front: Front) -> None:
    client = Client(front)
    assert client.ask("POST / HTTP/1.1", cookie(front), "Content-Length: 2", "Expect: 100-continue").status == 100
    client.send("hi")
    answer = client.answer()
    assert answer.seen["size"] == 2 and "expect" not in answer.seen["headers"]


def test_a_response_is_passed_on_as_it_comes(front: Front, server: Server) -> None:
    client = Client(front)
    client.send(f"GET /stream HTTP/1.1\r\nHost: 127.0.0.1:{front.port}\r\n{cookie(front)}\r\n\r\n")
    while client.file.readline() != b"\r\n":
        pass
    assert client.file.read(10) == b"5\r\nfirst\r\n"
    server.go.set()
    assert client.file.read(16) == b"6\r\nsecond\r\n0\r\n\r\n"


def test_how_a_response_ends(front: Front) -> None:
    has = cookie(front)
    until = Client(front).ask("GET /until-end HTTP/1.1", has)
    assert until.body == b"until the end" and until.headers["connection"] == "close"
    client = Client(front)
    assert client.ask("GET /short HTTP/1.1", has).body == b"short"  # and not 100 bytes: the client sees that
    assert client.ended()
    nothing = Client(front).ask("GET /nothing HTTP/1.1", has)
    assert nothing.status == 502 and nothing.sentence == "TensorBoard did not respond. Reload the page."


def test_headers_for_one_connection_are_not_passed_on(front: Front) -> None:
    lines = ("Connection: keep-alive, X-Hop", "X-Hop: 1", "Keep-Alive: 5", "TE: trailers", "Upgrade: h2c", "X-End: 1")
    seen = Client(front).ask("GET / HTTP/1.1", cookie(front), *lines).seen["headers"]
    assert seen["x-end"] == "1" and seen["connection"] == "keep-alive"
    assert not {"x-hop", "keep-alive", "te", "upgrade"} & set(seen)
    answer = Client(front).ask("GET /cookie HTTP/1.1", cookie(front))
    assert answer.headers["set-cookie"] == "mine=1" and "keep-alive" not in answer.headers


def test_websockets_pass(front: Front) -> None:
    lines = ("Connection: keep-alive, Upgrade", "Upgrade: websocket", f"Origin: http://127.0.0.1:{front.port}")
    refused = Client(front).ask("GET /socket HTTP/1.1", *lines)
    assert refused.status == 403
    for way in ("/socket", f"/socket?token={token(front)}"):
        client = Client(front)
        has = [] if "token" in way else [cookie(front)]
        assert client.ask(f"GET {way} HTTP/1.1", *lines, *has).status == 101
        for piece in (b"\x81\x05hello", os.urandom(100_000)):
            client.send(piece)
            assert client.file.read(len(piece)) == piece
        client.socket.shutdown(socket.SHUT_WR)
        assert client.ended()


def test_slow_and_large_heads_are_cut_off(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    large = Client(front)
    large.send("GET / HTTP/1.1\r\n" + "X: y\r\n" * 30_000)
    assert large.answer().status == 431
    monkeypatch.setattr(fronts, "PATIENCE", 0.2)
    for part in ("", "GET / HTTP/1.1\r\nHost: x\r\n"):
        slow = Client(front)
        slow.send(part)
        assert slow.ended()
    body = Client(front)
    assert body.ask("POST / HTTP/1.1", cookie(front), "Content-Length: 5", body=b"ab").status == 502


def test_only_so_many_connections(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fronts, "MOST", 2)
    has = cookie(front)
    held = [Client(front), Client(front)]
    for each in held:
        assert each.ask("GET / HTTP/1.1", has).status == 200
    third = Client(front)
    assert third.ended()


def test_the_server_starts_and_ends(path: Path) -> None:
    ended: list[bool] = []
    with Front(path, "TensorBoard", died=lambda: bool(ended)) as front:
        has = cookie(front)
        starting = Client(front).ask("GET / HTTP/1.1", has)
        assert starting.status == 503 and starting.sentence == "TensorBoard is starting …"
        assert b'http-equiv="refresh"' in starting.body
        with serving(path):
            assert Client(front).ask("GET / HTTP/1.1", has).status == 200
        path.unlink()
        gone = Client(front).ask("GET / HTTP/1.1", has)
        assert gone.status == 502 and gone.sentence.startswith("TensorBoard has ended.")
        assert b"refresh" not in gone.body
    with Front(path, "TensorBoard", died=lambda: True) as front:
        assert Client(front).ask("GET / HTTP/1.1", cookie(front)).status == 502


def test_it_ends_although_a_client_does_not_read(path: Path, server: Server) -> None:
    with Front(path, "TensorBoard") as front:
        client = Client(front)
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        body = b"x" * (32 << 20)
        head = f"POST /back HTTP/1.1\r\nHost: 127.0.0.1:{front.port}\r\n{cookie(front)}\r\n"
        client.send(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        assert client.file.read(1) == b"H"
        eventually(lambda: "drain" in _awaited(front))
        begun = time.monotonic()
    assert time.monotonic() - begun < 4 and not front._thread.is_alive()


def _awaited(front: Front) -> list[str]:
    """Return the functions in which the connections of a front wait."""
    found = []
    for task in list(front._clients):
        routine: Any = task.get_coro()
        while hasattr(routine, "cr_await"):
            found.append(routine.__name__)
            routine = routine.cr_await
    return found


def test_it_listens_on_loopback_only_and_stops(path: Path, server: Server) -> None:
    with Front(path, "TensorBoard") as front:
        held = Client(front)
        assert held.ask("GET / HTTP/1.1", cookie(front)).status == 200
        listening = Path("/proc/net/tcp").read_text() if Path("/proc/net/tcp").exists() else ""
        if listening:
            assert re.search(f" 0100007F:{front.port:04X} 00000000:0000 0A ", listening)
    assert held.ended()
    with pytest.raises(OSError):
        Client(front)


def test_a_connection_to_the_server_is_used_again(front: Front, path: Path) -> None:
    """Also by another client; and a request is repeated if the server has closed it meanwhile."""
    has = cookie(front)
    for _time in range(3):
        assert Client(front).ask("GET / HTTP/1.1", has).status == 200
    assert Client(front).ask("GET /until-end HTTP/1.1", has).body == b"until the end"
    for _time in range(3):
        assert Client(front).ask("GET / HTTP/1.1", has).status == 200


def test_a_server_that_never_answers_keeps_no_connection(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the client has gone; else they would add up to the most that a front has."""
    monkeypatch.setattr(fronts, "PATIENCE", 0.4)
    with socket.socket(socket.AF_UNIX) as silent, Front(path, "TensorBoard") as front:
        silent.bind(str(path))
        silent.listen()
        silent.settimeout(20)
        client = Client(front)
        client.send(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{front.port}\r\n{cookie(front)}\r\n\r\n")
        server, _where = silent.accept()
        with server:
            server.settimeout(20)
            assert server.recv(1 << 16).startswith(b"GET / ")
            client.file.close()
            client.socket.close()
            assert server.recv(1) == b"", "the front has left"
