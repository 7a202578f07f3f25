"""A TCP relay that can delay, throttle, and cut a connection at an exact byte.

Runs as a separate program (`python relay.py LISTEN TARGET RULES`), standard library only. It reads
RULES, a small JSON file, for each new connection, so replacing that file changes the faults. When a
connection ends, the relay appends a line to the log: RULES with the suffix .log.
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
    """Faults of a connection. 'up' is towards the server, 'down' towards the client."""

    delay_ms: float = 0
    """Delay in each direction."""
    rate: int = 0
    """Bytes per second in each direction; 0 is unlimited."""
    cut_at: int = -1
    """The connection ends after exactly this many bytes in `direction`; -1 is never."""
    direction: str = "up"
    ending: str = "reset"
    """How it ends: 'reset' resets both sides immediately; 'stall' passes nothing more, like a dead link."""
    connections: int = 0
    """The rules apply to the next N connections only; 0 is all."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def parse(text: str) -> Rules:
    """Parse rules from JSON. Raises ValueError for unknown names or values, which would inject no fault."""
    raw: dict[str, Any] = json.loads(text)
    unknown = set(raw) - {field.name for field in fields(Rules)}
    if unknown:
        raise ValueError(f"unknown rule {', '.join(sorted(unknown))}")
    rules = Rules(**raw)
    if rules.direction not in DIRECTIONS or rules.ending not in ENDINGS:
        raise ValueError("direction must be up, down or both; ending must be reset or stall")
    return rules


class Connection:
    """A client's connection to the server, under the rules in force when it was opened."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.passed = {"up": 0, "down": 0}
        self.ended = asyncio.Event()
        self.cut = False

    async def pump(self, direction: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one direction until its end. The delay does not lower the rate."""
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
    """Connects each client to the target under the rules in force."""

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
    """Make closing the socket send a reset, as a rebooted host would."""
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
