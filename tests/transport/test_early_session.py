"""The early query of `ps` on the socket of a master: an answer is used only if a master opened the session."""

from __future__ import annotations

import array
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from yurt.transport import mux, queue_prefetch
from yurt.transport.mux_settings import MuxSettings

BEGIN, END = b"\nyurt-begin-1\n", b"yurt-end-1 "
HELLO = mux.request("x", MuxSettings(False, [], []))[:12]
OPENED = b"\0\0\0\x0c\x80\0\0\x06\0\0\0\0\0\0\0\x02"
REFUSED = b"\0\0\0\x14\x80\0\0\x03\0\0\0\0\0\0\0\x08no more!"

Master = Callable[[socket.socket, list[int]], None]


@pytest.fixture
def master(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Master], None]]:
    """Listens on a socket, receives a query that was saved before, and lets the test answer it."""
    monkeypatch.setenv("YURT_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(queue_prefetch, "is_binary", lambda _program, _path: True)
    path, held = str(tmp_path / "s"), list[int]()
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()

    def serve(answer: Master) -> None:
        connection, _ = server.accept()
        with connection:
            received = b""
            while len(held) < 3:
                part, extra, _flags, _ = connection.recvmsg(4096, socket.CMSG_SPACE(12))
                received += part
                for _level, _kind, data in extra:
                    held.extend(array.array("i", data))
            assert received.startswith(HELLO)
            answer(connection, held)

    def begin(answer: Master) -> None:
        threading.Thread(target=serve, args=(answer,), daemon=True).start()
        request = (mux.request("sh", MuxSettings(False, [], [])), list[tuple[str, str]]())
        queue_prefetch.save(b"key", ("ps", b""), (BEGIN, END), path, request=request, argv=["false"], query=b"question")
        queue_prefetch.begin(["ps"])

    yield begin
    server.close()
    queue_prefetch._pending.clear()
    for each in held:
        os.close(each)


def ask(silent: float = 20.0) -> bytes | None:
    found = queue_prefetch.answer(b"key", 0.2, silent, lambda _begun: None)
    return None if found is None else found[1]


def test_an_answer_ends_with_its_marker(master: Callable[[Master], None]) -> None:
    over = threading.Event()

    def answer(connection: socket.socket, streams: list[int]) -> None:
        assert os.read(streams[0], 100) == b"question"
        for part in (HELLO[:5], HELLO[5:] + OPENED[:3], OPENED[3:]):
            connection.sendall(part)
            time.sleep(0.01)
        os.write(streams[1], BEGIN + b"states\n")
        os.write(streams[1], END + b"0\n")
        over.wait(20)  # the session itself does not end

    master(answer)
    assert ask() == BEGIN + b"states\n" + END + b"0\n"
    over.set()


@pytest.mark.parametrize("said", [b"garbage!", HELLO + REFUSED, HELLO[:11] + b"\x05", b""], ids=repr)
def test_no_session(master: Callable[[Master], None], said: bytes) -> None:
    over = threading.Event()

    def answer(connection: socket.socket, _streams: list[int]) -> None:
        connection.sendall(said)
        if not said:
            connection.shutdown(socket.SHUT_RDWR)
        over.wait(20)  # and it keeps the streams open

    master(answer)
    assert ask() is None
    over.set()


def test_a_silent_master(master: Callable[[Master], None]) -> None:
    over = threading.Event()

    def answer(_connection: socket.socket, _streams: list[int]) -> None:
        over.wait(20)

    master(answer)
    with pytest.raises(TimeoutError):
        ask(silent=0.3)
    over.set()


def test_a_script_in_place_of_ssh_is_started(
    master: Callable[[Master], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_prefetch, "is_binary", lambda _program, _path: False)
    program = tmp_path / "ssh"
    program.write_text("#!/bin/sh\ncat; echo; echo by the script\n")
    program.chmod(0o755)
    request = (mux.request("sh", MuxSettings(False, [], [])), list[tuple[str, str]]())
    queue_prefetch.save(
        b"key",
        ("ps", b""),
        (BEGIN, END),
        str(tmp_path / "s"),
        request=request,
        argv=[str(program)],
        query=b"question",
    )
    queue_prefetch.begin(["ps"])
    assert ask() == b"question\nby the script\n"


def test_a_query_that_was_not_prepared_is_not_saved_as_the_one_before_it() -> None:
    queue_prefetch.prepare("logs", b"basis")
    assert queue_prefetch.take_target() == ("logs", b"basis")
    assert queue_prefetch.take_target() is None
