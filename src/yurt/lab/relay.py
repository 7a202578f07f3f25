"""A relay in front of a server that can delay, throttle and cut a connection at an exact byte.

Runs as a program of its own (`python relay.py LISTEN TARGET RULES`), standard library only. It
reads RULES, a small JSON file, anew for each connection, so a campaign changes the weather by
replacing that file. Each connection leaves a line in RULES.log when it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

CHUNK = 65536
DIRECTIONS = ("up", "down", "both")
ENDINGS = ("reset", "stall")


@dataclass(frozen=True)
class Rules:
    """What happens to a connection. 'up' is towards the server, 'down' towards the client."""

    delay_ms: float = 0
    """Added to each way of a byte."""
    rate: int = 0
    """Bytes per second each way; 0 is as fast as it goes."""
    cut_at: int = -1
    """Exactly this many bytes pass in `direction`, then the connection ends; -1 is never."""
    direction: str = "up"
    ending: str = "reset"
    """How it ends: 'reset' closes both sides at once; 'stall' keeps silent, as a dead link does."""
    connections: int = 0
    """Only this many connections meet the rules from now on, later ones pass; 0 is all."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def parse(text: str) -> Rules:
    """Rules from JSON. Unknown words are an error: a fault that does not bite must not look set."""
    raw: dict[str, Any] = json.loads(text)
    unknown = set(raw) - {field.name for field in fields(Rules)}
    if unknown:
        raise ValueError(f"unknown rule {', '.join(sorted(unknown))}")
    rules = Rules(**raw)
    if rules.direction not in DIRECTIONS or rules.ending not in ENDINGS:
        raise ValueError("direction is up, down or both; ending is reset or stall")
    return rules


class Connection:
    """One client connected to the server through the rules in force when it came."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.passed = {"up": 0, "down": 0}
        self.ended = asyncio.Event()
        self.cut = False

    async def pump(self, direction: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one direction until its end; delay does not lower the rate."""
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(maxsize=256)
        loop = asyncio.get_running_loop()
        sender = asyncio.create_task(self._send(direction, queue, writer))
        try:
            while not sender.done():
                chunk = await reader.read(CHUNK)
                await queue.put((loop.time() + self.rules.delay_ms / 1000, chunk))
                if not chunk:
                    break
            await sender
        except (ConnectionError, OSError):
            self.ended.set()
        finally:
            sender.cancel()

    async def _send(
        self, direction: str, queue: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter
    ) -> None:
        rules, loop = self.rules, asyncio.get_running_loop()
        while True:
            due, chunk = await queue.get()
            if due > loop.time():
                await asyncio.sleep(due - loop.time())
            if not chunk:
                with contextlib.suppress(OSError):
                    writer.write_eof()
                return
            if rules.cut_at >= 0 and rules.direction in (direction, "both"):
                chunk = chunk[: max(0, rules.cut_at - self.passed[direction])]
            for start in range(0, len(chunk), self._slice()):
                part = chunk[start : start + self._slice()]
                writer.write(part)
                await writer.drain()
                self.passed[direction] += len(part)
                if rules.rate:
                    await asyncio.sleep(len(part) / rules.rate)
            if rules.cut_at >= 0 and rules.direction in (direction, "both") and self.passed[direction] >= rules.cut_at:
                self.cut = True
                if rules.ending == "reset":
                    self.ended.set()
                else:
                    await asyncio.Event().wait()

    def _slice(self) -> int:
        return max(1, min(CHUNK, self.rules.rate // 20)) if self.rules.rate else CHUNK


class Relay:
    """Listens, and connects each client to the target under the rules in force."""

    def __init__(self, target: tuple[str, int], file: Path) -> None:
        self.target = target
        self.file = file
        self.text = ""
        self.met = 0

    def rules_now(self) -> Rules:
        text = self.file.read_text()
        if text != self.text:
            self.text, self.met = text, 0
        rules = parse(text)
        self.met += 1
        return Rules() if rules.connections and self.met > rules.connections else rules

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(self.rules_now())
        try:
            far_reader, far_writer = await asyncio.open_connection(*self.target)
        except OSError:
            writer.transport.abort()
            return
        if connection.rules.cut_at == 0 and connection.rules.ending == "reset":
            connection.cut = True
            connection.ended.set()
        pumps = asyncio.gather(connection.pump("up", reader, far_writer), connection.pump("down", far_reader, writer))
        ended = asyncio.ensure_future(connection.ended.wait())
        both: list[asyncio.Future[Any]] = [pumps, ended]
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for one in both:
            one.cancel()
        await asyncio.gather(*both, return_exceptions=True)
        for side in (writer, far_writer):
            if connection.cut:
                _reset(side)
            side.transport.abort() if connection.cut else side.close()
        with contextlib.suppress(OSError), self.file.with_suffix(".log").open("a") as log:
            log.write(json.dumps({**connection.passed, "cut": connection.cut}) + "\n")


def _reset(writer: asyncio.StreamWriter) -> None:
    """Make the close a reset, which is what a client sees of a host that forgot it."""
    raw = writer.get_extra_info("socket")
    with contextlib.suppress(OSError, AttributeError):
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


async def main(listen: str, target: str, file: str, ready: Callable[[], None] = lambda: None) -> None:
    relay = Relay(address(target), Path(file))
    server = await asyncio.start_server(relay.serve, *address(listen))
    ready()
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    _listen, _target, _file = sys.argv[1:4]
    asyncio.run(main(_listen, _target, _file, lambda: print("ready", flush=True)))
