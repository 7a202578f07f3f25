"""The relay alone, on loopback: what it passes and where it cuts, exact to the byte."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yurt.lab import relay
from yurt.lab.relay import Rules


class Front:
    """An echo server with the relay in front of it."""

    def __init__(self, folder: Path) -> None:
        self.server = socket.create_server(("127.0.0.1", 0))
        self.file = folder / "rules.json"
        self.set(Rules())
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()
        argv = [sys.executable, relay.__file__, f"127.0.0.1:{self.port}"]
        argv += [f"127.0.0.1:{self.server.getsockname()[1]}", str(self.file)]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE)
        assert self.process.stdout is not None and self.process.stdout.readline() == b"ready\n"

    def set(self, rules: Rules) -> None:
        self.file.write_text(rules.to_json())

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self.server.accept()
            except OSError:
                return
            threading.Thread(target=self._echo, args=(client,), daemon=True).start()

    @staticmethod
    def _echo(client: socket.socket) -> None:
        try:
            while chunk := client.recv(65536):
                client.sendall(chunk)
        except OSError:
            return
        finally:
            client.close()

    def exchange(self, content: bytes, timeout: float = 10) -> bytes:
        """Send, close that direction, and return everything received before the end or the reset."""
        back = b""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as client:
                client.sendall(content)
                client.shutdown(socket.SHUT_WR)
                while chunk := client.recv(65536):
                    back += chunk
        except TimeoutError:
            raise
        except OSError:  # reset, or no longer connected
            return back
        return back


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    found = Front(tmp_path_factory.mktemp("relay"))
    yield found
    found.process.terminate()
    found.process.wait()
    found.server.close()


@settings(max_examples=60, deadline=None)
@given(content=st.binary(max_size=300_000))
def test_passes_everything_without_rules(front: Front, content: bytes) -> None:
    front.set(Rules())
    assert front.exchange(content) == content


@settings(max_examples=60, deadline=None)
@given(
    size=st.integers(1, 200_000),
    share=st.floats(0, 1, exclude_max=True),
    direction=st.sampled_from(["up", "down", "both"]),
)
def test_cut_at_exactly_the_byte(front: Front, size: int, share: float, direction: str) -> None:
    cut_at = int(size * share)
    log = front.file.with_suffix(".log")
    log.unlink(missing_ok=True)
    front.set(Rules(cut_at=cut_at, direction=direction))
    content = bytes(index % 251 for index in range(size))
    back = front.exchange(content)
    assert content.startswith(back) and len(back) <= cut_at
    while not log.exists() or not log.read_text().endswith("\n"):
        time.sleep(0.005)
    row = json.loads(log.read_text().splitlines()[0])
    assert row["cut"] and (row["up"] == cut_at or row["down"] == cut_at)
    assert direction == "both" or row[direction] == cut_at


def test_delay_each_way_and_rate(front: Front) -> None:
    def seconds(content: bytes) -> float:
        started = time.monotonic()
        assert front.exchange(content) == content
        return time.monotonic() - started

    front.set(Rules(delay_ms=200))
    assert seconds(b"x") >= 0.4
    front.set(Rules(rate=100_000))
    assert seconds(bytes(50_000)) >= 0.5


def test_stall_passes_nothing_more(front: Front) -> None:
    front.set(Rules(cut_at=10, ending="stall"))
    with pytest.raises(TimeoutError):
        front.exchange(bytes(100), timeout=1)


def test_rules_for_the_next_connections_only(front: Front) -> None:
    front.set(Rules(cut_at=1, connections=2))
    assert [front.exchange(b"abc") == b"abc" for _ in range(4)] == [False, False, True, True]


@pytest.mark.parametrize("text", ['{"cut": 1}', '{"direction": "left"}', '{"ending": "bang"}'])
def test_invalid_rules_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"rule|direction"):
        relay.parse(text)
