"""A tunnel, with its far end as a process of this machine."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import socket
import subprocess
import sys
import threading
import zlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from yurt.errors import UnreachableError
from yurt.model.progress import on_slow, report_slow
from yurt.node import tunnel as far
from yurt.services import ports as forward
from yurt.services import tunnel as tunnels
from yurt.services.tunnel import Tunnel, command

BOMB = zlib.compress(bytes(10 << 20))


class Program:
    """A program that listens: it returns the checksum of what it gets, and as many bytes as the first line says."""

    def __init__(self, path: Path) -> None:
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(str(path))
        self.server.listen(100)
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                link, _where = self.server.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._answer, args=(link,), daemon=True).start()

    def _answer(self, link: socket.socket) -> None:
        with link, suppress(OSError):
            stream = link.makefile("rb")
            wanted = int(stream.readline())
            if wanted < 0:
                return
            rest = stream.read()
            link.sendall(hashlib.sha256(rest).hexdigest().encode() + b"x" * wanted)


async def talk(path: Path, wanted: int, content: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(b"%d\n" % wanted + content)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    return answer


def with_tunnel(
    tmp_path: Path, play: Callable[[Path, Tunnel], Awaitable[None]], words: list[str], target: Path | int
) -> None:
    started: list[int] = []

    def start() -> list[str]:
        started.append(1)
        return ["sh", "-c", f"echo noise of dotfiles; exec {command(str(target), sys.executable)}"]

    async def main() -> None:
        tunnel = Tunnel(start, on_word=words.append)
        server = await asyncio.start_unix_server(tunnel.accept, tmp_path / "near")
        running = asyncio.create_task(tunnel.run())
        try:
            await asyncio.wait_for(play(tmp_path / "near", tunnel), 60)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            server.close()

    asyncio.run(main())


def right(answer: bytes, wanted: int, content: bytes) -> bool:
    return answer == hashlib.sha256(content).hexdigest().encode() + b"x" * wanted


def test_many_connections_through_one_program(tmp_path: Path) -> None:
    program = Program(tmp_path / "far")
    contents = [os.urandom(size) for size in (0, 1, 100_000, 3_000_000)] * 10

    async def play(path: Path, tunnel: Tunnel) -> None:
        answers = await asyncio.gather(*(talk(path, len(each), each) for each in contents))
        assert all(right(answer, len(each), each) for answer, each in zip(answers, contents, strict=True))

    words: list[str] = []
    with_tunnel(tmp_path, play, words, tmp_path / "far")
    assert program.connections == 40 and words == []


def test_a_slow_reader_does_not_hold_up_the_others(tmp_path: Path) -> None:
    Program(tmp_path / "far")

    async def play(path: Path, tunnel: Tunnel) -> None:
        slow, writer = await asyncio.open_unix_connection(path, limit=1000)
        writer.write(b"50000000\n")
        writer.write_eof()
        assert await slow.readexactly(10)
        assert right(await talk(path, 100_000, b"quick"), 100_000, b"quick")
        writer.close()

    with_tunnel(tmp_path, play, [], tmp_path / "far")


def test_connections_after_the_program_was_killed(tmp_path: Path) -> None:
    Program(tmp_path / "far")
    words: list[str] = []

    async def play(path: Path, tunnel: Tunnel) -> None:
        assert right(await talk(path, 5, b"one"), 5, b"one")
        open_one, writer = await asyncio.open_unix_connection(path)
        writer.write(b"100000000\n")
        writer.write_eof()
        await open_one.readexactly(100)
        found = subprocess.run(["pgrep", "-f", f"unix {tmp_path}/far"], capture_output=True, text=True, check=True)
        for pid in found.stdout.split():
            os.kill(int(pid), signal.SIGKILL)
        with suppress(ConnectionError):
            assert len(await open_one.read()) < 100_000_000
        assert right(await talk(path, 7, b"two"), 7, b"two")
        assert "connecting again" in words[0] and "open again" in words[1]

    with_tunnel(tmp_path, play, words, tmp_path / "far")


def test_one_line_during_a_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often the site is tried, and whatever that prints."""
    Program(tmp_path / "far")
    monkeypatch.setattr("yurt.services.tunnel.FIRST", 0.05)
    monkeypatch.setattr("yurt.services.tunnel.LOOKS", (0.05, 0.05))
    words: list[str] = []
    slow: list[str] = []
    tries: list[str] = []

    def program(given: str) -> list[str]:
        tries.append(given)
        if len(tries) == 1:
            return ["sh", "-c", f"(until [ -e {tmp_path}/cut ]; do sleep 0.05; done; kill $$) & exec {given}"]
        report_slow("waiting for alpha to respond; giving up after 15 s")
        raise UnreachableError("alpha: no response within 15 s", code="timed-out")

    def is_over() -> bool:
        if (tmp_path / "cut").exists():  # before that, the user hears of it
            report_slow("waiting for alpha to respond; giving up after 15 s")
        return len(tries) > 3

    on_slow(slow.append)
    try:
        forward.forward(
            program,
            [(tmp_path / "near", str(tmp_path / "far"))],
            is_over=is_over,
            interval=0.5,
            on_open=(tmp_path / "cut").touch,
            on_word=words.append,
        )
        assert len(words) == 1 and words[0].startswith("the connection to the node is lost") and slow == []
        report_slow("afterwards")
    finally:
        on_slow(None)
    assert slow == ["afterwards"]


def test_the_greeting_of_a_silent_site_is_not_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Program(tmp_path / "far")
    monkeypatch.setattr(tunnels, "SILENT", 0.5)
    monkeypatch.setattr(tunnels, "LOOKS", (0.05,))
    words: list[str] = []
    stops = f"(until [ -e {tmp_path}/cut ]; do sleep 0.05; done; kill -STOP $$) &"
    forward.forward(
        lambda given: ["sh", "-c", f"echo 'Have a nice day.' >&2; {stops} exec {given}"],
        [(tmp_path / "near", str(tmp_path / "far"))],
        is_over=lambda: bool(words),
        interval=600,
        on_open=(tmp_path / "cut").touch,
        on_word=words.append,
    )
    assert words == ["the connection to the node is lost (no response); connecting again"]


def test_a_connection_that_says_nothing_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tunnels, "PATIENCE", 0.3)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "far"))
        silent.listen()

        async def play(path: Path, _tunnel: Tunnel) -> None:
            reader, _writer = await asyncio.open_unix_connection(path)
            assert await reader.read() == b""

        with_tunnel(tmp_path, play, [], tmp_path / "far")


def test_connections_at_the_same_time_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tunnels, "MOST", 1)
    Program(tmp_path / "far")

    async def play(path: Path, _tunnel: Tunnel) -> None:
        reader, writer = await asyncio.open_unix_connection(path)
        more, _writer = await asyncio.open_unix_connection(path)
        assert await more.read() == b""
        writer.write(b"5\n")
        writer.write_eof()
        assert right(await reader.read(), 5, b"")

    with_tunnel(tmp_path, play, [], tmp_path / "far")


@pytest.mark.parametrize(
    "frames",
    [
        (far.HEAD.pack(far.DATA, 1, far.CHUNK) + bytes(far.CHUNK)) * 100,
        far.HEAD.pack(far.DATA, 1, 1 << 31) + bytes(1 << 20),
        far.HEAD.pack(far.PACKED, 1, len(BOMB)) + BOMB,
        far.HEAD.pack(far.PACKED, 1, 5) + b"other",
    ],
    ids=["without credit", "large", "packed", "not packed"],
)
def test_a_far_end_that_sends_more_than_it_may_is_left(
    frames: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A site must not fill the memory of this machine."""
    monkeypatch.setattr(tunnels, "LOOKS", (0.0, 0.0))
    (tmp_path / "frames").write_bytes(frames)
    size = len(tunnels.SOURCE.read_bytes()) + far.HEAD.size
    code = f"import sys; o = sys.stdout.buffer; o.write({far.MAGIC!r}); o.flush(); sys.stdin.buffer.read({size}); "
    code += f"o.write(open('{tmp_path}/frames', 'rb').read()); o.flush(); sys.stdin.buffer.read()"
    words: list[str] = []

    async def main() -> None:
        tunnel = Tunnel(lambda: [sys.executable, "-c", code], on_word=words.append)
        server = await asyncio.start_unix_server(tunnel.accept, tmp_path / "near")
        running = asyncio.create_task(tunnel.run())
        try:
            async with asyncio.timeout(20):
                _reader, writer = await asyncio.open_unix_connection(tmp_path / "near", limit=1000)
                while not words:
                    await asyncio.sleep(0.01)
                writer.close()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            server.close()

    asyncio.run(main())
    assert "connecting again" in words[0]


def test_nothing_listens(tmp_path: Path) -> None:
    async def play(path: Path, tunnel: Tunnel) -> None:
        with pytest.raises((ConnectionError, AssertionError)):
            assert await talk(path, 1, b"x")

    with_tunnel(tmp_path, play, [], tmp_path / "nothing")


def test_packed_parts() -> None:
    text = b"for each in range(10): print(each)\n" * 100
    assert 0 < len(far.packed(text)) < len(text) / 5 and zlib.decompress(far.packed(text)) == text
    assert far.packed(os.urandom(5000)) == b"" == far.packed(b"short")


def test_under_srun_parts_are_packed_and_padded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many bytes come and go unchanged."""
    assert far.padding() == b""
    monkeypatch.setenv("SLURM_STEP_ID", "1")
    assert len(far.padding()) > 1500
    path = tmp_path / "p"
    Program(path)

    async def talks(near: Path, _tunnel: Tunnel) -> None:
        content = b"line\n" * 200_000
        expected = hashlib.sha256(content).hexdigest().encode()
        answers = await asyncio.gather(*(talk(near, 1_000_000, content) for _each in range(4)))
        assert answers == [expected + b"x" * 1_000_000] * 4

    with_tunnel(tmp_path, talks, [], path)
