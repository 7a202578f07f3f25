"""Sessions on an open connection without the ssh program: as with it; what goes wrong is left to it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.transport.conftest import site
from tests.transport.test_ssh import as_root, changed, kill_masters, masters
from yurt.errors import UnreachableError
from yurt.lab import Lab
from yurt.testing.waiting import eventually
from yurt.transport import mux, mux_settings
from yurt.transport.command import Silent
from yurt.transport.mux_settings import MuxSettings
from yurt.transport.ssh import SshHost

PLAIN = MuxSettings(False, [], [])


def packet(*numbers: int, text: bytes = b"") -> bytes:
    body = b"".join(struct.pack(">I", each) for each in numbers) + text
    return struct.pack(">I", len(body)) + body


HELLO = packet(1, 4)
OPENED = packet(mux.OPENED, 0, 7)


@contextlib.contextmanager
def master(path: Path, behave: Callable[[socket.socket], None]) -> Iterator[str]:
    """Something that listens where a master would."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _address = listener.accept()
                with connection, contextlib.suppress(struct.error):  # a connection that asks only whether it answers
                    behave(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield str(path)
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)  # wakes a thread that still waits for a connection
        listener.close()
        thread.join(10)


def request_of(connection: socket.socket) -> bytes:
    """Return the packet that asks for a session; its descriptors stay unread."""
    hello = connection.recv(12, socket.MSG_WAITALL)
    assert hello == HELLO
    (length,) = struct.unpack(">I", connection.recv(4, socket.MSG_WAITALL))
    return connection.recv(length, socket.MSG_WAITALL)


def opened(path: str, *, silent: float = 5.0, slow: float = 5.0) -> mux.MuxSession:
    session = mux.MuxSession(path, "true", PLAIN)
    session.wait_until_open(slow, silent, lambda: None)
    return session


def test_a_session_as_the_protocol_has_it(tmp_path: Path) -> None:
    asked: list[bytes] = []

    def behave(connection: socket.socket) -> None:
        asked.append(request_of(connection))
        streams = [socket.recv_fds(connection, 1, 1)[1][0] for _ in range(3)]
        connection.sendall(HELLO + OPENED)
        with os.fdopen(streams[0], "rb") as stdin:
            os.write(streams[1], b"out:" + stdin.read())
        os.write(streams[2], b"err")
        connection.sendall(packet(mux.EXIT, 7, 3))
        for each in streams[1:]:
            os.close(each)

    settings = MuxSettings(True, ["YURT_MUX_*"], ["GIVEN=a b"])
    os.environ["YURT_MUX_TEST"] = "sent"
    with master(tmp_path / "s", behave) as path:
        session = mux.MuxSession(path, "wörd", settings)
        session.wait_until_open(5, 5, lambda: None)
        session.stdin.write(b"in")
        session.stdin.close()
        assert session.stderr is not None
        assert (session.stdout.read(), session.stderr.read(), session.wait(5)) == (b"out:in", b"err", 3)
        session.end()
    del os.environ["YURT_MUX_TEST"]
    strings = b"".join(
        struct.pack(">I", len(each)) + each for each in ("wörd".encode(), b"YURT_MUX_TEST=sent", b"GIVEN=a b")
    )
    flags = struct.pack(">IIIII", 0, 0, 1, 0, 0xFFFFFFFF)
    assert asked == [struct.pack(">III", mux.NEW_SESSION, 0, 0) + flags + struct.pack(">I", 0) + strings]


def says(answer: bytes) -> Callable[[socket.socket], None]:
    """Return a master that reads the request, answers, and closes when the other side does."""

    def behave(connection: socket.socket) -> None:
        request_of(connection)
        connection.sendall(answer)
        if answer not in (b"", HELLO):
            connection.settimeout(20)
            while connection.recv(1 << 16):
                pass

    return behave


UNUSUAL: dict[str, tuple[Callable[[socket.socket], None], type[Exception]]] = {
    "closes at once": (lambda _connection: None, mux.NoSession),
    "closes before hello": (says(b""), mux.NoSession),
    "closes after hello": (says(HELLO), mux.NoSession),
    "refuses": (says(HELLO + packet(mux.FAILURE, 0, 28, text=b"Session open refused by peer")), mux.NoSession),
    "another version": (says(packet(1, 5)), mux.Unusable),
    "garbage": (says(b"HTTP/1.1 400 Bad Request\r\n\r\n"), mux.Unusable),
    "zeros": (says(bytes(64)), mux.Unusable),
    "an unknown message": (says(HELLO + packet(0x80000099, 0, 0)), mux.Unusable),
    "an end before a beginning": (says(HELLO + packet(mux.EXIT, 7, 0)), mux.Unusable),
}


def sockets() -> set[str]:
    """Return the open sockets of this process."""
    found = set()
    for each in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found.add(os.readlink(each))
    return {each for each in found if each.startswith("socket:")}


@pytest.mark.parametrize("kind", list(UNUSUAL))
def test_what_is_unusual_reaches_no_site(tmp_path: Path, kind: str) -> None:
    behave, error = UNUSUAL[kind]
    before = sockets()
    with master(tmp_path / "s", behave) as path, pytest.raises(error):
        opened(path)
    assert not sockets() - before


def test_no_socket_and_nothing_that_listens(tmp_path: Path) -> None:
    with pytest.raises(mux.NoSession):
        opened(str(tmp_path / "none"))
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "dead"))
    with pytest.raises(mux.NoSession):
        opened(str(tmp_path / "dead"))


def _wait(event: threading.Event) -> None:
    event.wait(20)


def test_a_master_that_says_nothing(tmp_path: Path) -> None:
    told: list[str] = []
    over = threading.Event()
    with master(tmp_path / "s", lambda _connection: _wait(over)) as path:
        session = mux.MuxSession(path, "true", PLAIN)
        with pytest.raises(Silent):
            session.wait_until_open(0.05, 0.2, lambda: told.append("slow"))
        over.set()
    assert told == ["slow"]


SETTINGS = {
    "plain": ([("sendenv", "LANG"), ("sendenv", "LC_*"), ("forwardagent", "no")], "agent no\nsend LANG\nsend LC_*\n"),
    "all": ([("forwardagent", "yes"), ("setenv", "A=b c")], "agent yes\nset A=b c\n"),
    "agent elsewhere": ([("forwardagent", "/tmp/agent")], None),
    "X11": ([("forwardx11", "yes")], None),
    "a command of its own": ([("remotecommand", "tmux")], None),
}


@pytest.mark.parametrize("kind", list(SETTINGS))
def test_settings(kind: str) -> None:
    rows, text = SETTINGS[kind]
    made = mux_settings.of_session(rows)
    assert (made and made.text()) == text
    if made is not None:
        assert mux_settings.parse(made.text()).text() == text


@pytest.fixture
def no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if the ssh program is started for a command."""

    def start(*_arguments: object) -> None:
        raise AssertionError("the ssh program was started")

    monkeypatch.setattr("yurt.transport.command.ProgramCommand", start)


@pytest.mark.lab
def test_the_same_environment_as_with_the_ssh_program(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_TELEPHONE", "it's set")
    monkeypatch.setenv("UNRELATED", "x")
    with changed(lab, "alpha", "/etc/lab/sshd_config", "sed -i '1i AcceptEnv GIVEN' /etc/lab/sshd_config"):
        host = site(lab, "alpha", "-o", "SendEnv=LC_*", "-o", "SetEnv=GIVEN=one")
        answers = [host.run("env | grep -v -e ^SSH_ -e ^XDG_SESSION -e ^_= | sort").out]
        host.master.require_program()
        answers.append(host.run("env | grep -v -e ^SSH_ -e ^XDG_SESSION -e ^_= | sort").out)
        assert answers[0] == answers[1]
        assert b"LC_TELEPHONE=it's set\n" in answers[0] and b"GIVEN=one\n" in answers[0]
        assert b"UNRELATED" not in answers[0]


@pytest.mark.lab
def test_commands_start_no_program(lab: Lab, no_program: None) -> None:
    host = site(lab, "alpha")
    assert host.run("cat; exit 5", stdin=b"x" * 300_000).out == b"x" * 300_000
    with host.stream("for each in 1 2 3; do echo $each; done") as stream:
        assert b"".join(stream) == b"1\n2\n3\n"
    host.put(b"content", "/tmp/mux-file")


@pytest.mark.lab
@pytest.mark.parametrize("behave", ["garbage", "closes after hello", "another version"])
def test_a_socket_that_something_else_answers(lab: Lab, behave: str) -> None:
    """A new master is opened, or an error says so; the command runs once at most."""
    host = site(lab, "alpha")
    assert host.run("rm -f /tmp/mux-ledger").code == 0
    end = masters(host)
    host.master.socket.unlink()
    with master(host.master.socket, UNUSUAL[behave][0]), contextlib.suppress(UnreachableError):
        host.run("echo once >> /tmp/mux-ledger", timeout=10)
    for pid in end:
        os.kill(pid, 15)
    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in end))
    host.master.socket.unlink(missing_ok=True)
    assert site(lab, "alpha").run("cat /tmp/mux-ledger 2> /dev/null").out in (b"", b"once\n")


@pytest.mark.lab
def test_a_stopped_master_is_replaced(lab: Lab) -> None:
    """The command runs once, over a new connection; the old one never carries out what waits in its socket."""
    host = site(lab, "alpha")
    ledger = f"/tmp/stopped-{os.urandom(4).hex()}"
    host.run("true")
    before = masters(host)
    kill_masters(host, signal.SIGSTOP)
    try:
        assert host.run(f"echo once >> {ledger}; cat {ledger}", timeout=30).out == b"once\n"
    finally:
        for pid in before:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    assert before and not set(before) & set(masters(host))
    assert host.run(f"cat {ledger}; rm {ledger}").out == b"once\n"


@pytest.mark.lab
def test_a_wrapper_of_the_user_is_used(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    wrapper = tmp_path / "ssh"
    real = subprocess.run(["sh", "-c", "command -v ssh"], capture_output=True, text=True, check=True).stdout.strip()
    wrapper.write_text(f'#!/bin/sh\necho called >> {log}\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    host = site(lab, "alpha", "-o", "LogLevel=ERROR")
    host.run("true")
    before = log.read_text().count("called")
    host.run("true")
    assert log.read_text().count("called") == before + 1


@pytest.mark.lab
def test_descriptors_that_the_master_cannot_take(lab: Lab) -> None:
    """A master without free descriptors: the command runs once, or not at all."""
    host: SshHost = site(lab, "alpha")
    host.run("rm -f /tmp/mux-ledger")
    for pid in masters(host):
        subprocess.run(["prlimit", "--pid", str(pid), "--nofile=9:9"], check=True)
    with contextlib.suppress(UnreachableError):
        host.run("echo once >> /tmp/mux-ledger", timeout=10)
    for pid in masters(host):
        os.kill(pid, 9)
    assert site(lab, "alpha").run("cat /tmp/mux-ledger 2> /dev/null").out in (b"", b"once\n")
    assert as_root(lab, "alpha", "true") == ""
