"""The near end of a tunnel: carries connections of this machine to a node, all of them through one program.

The program runs the far end (`node/tunnel.py`) on the node, with its code as the first bytes of its input. If it ends,
such as after a sleep of this machine, open connections end, and the next ones wait until it runs again.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import threading
import time
import zlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from yurt.errors import RefusedError, YurtError
from yurt.node import tunnel as far
from yurt.node.tunnel import (
    CHUNK,
    CLOSE,
    CREDIT,
    DATA,
    END,
    HEAD,
    MAGIC,
    OPEN,
    PACKED,
    PAD,
    PAUSE,
    PING,
    WINDOW,
    Address,
)

_Value = TypeVar("_Value")

SOURCE = Path(far.__file__)

RUN = (
    "import os,sys\nn,b=int(sys.argv.pop(1)),b''\nwhile len(b)<n:\n r=os.read(0,n-len(b))\n b+=r\n"
    " if not r:sys.exit(1)\nexec(compile(b,'tunnel','exec'))"
)
"""Reads so many bytes of code from its standard input, and runs it."""

BEAT, SILENT = 10.0, 30.0
"""Seconds between two signs of life, and without one before the far end counts as lost."""

AWAKE = 5.0
"""Seconds in which the far end must respond after this machine slept."""

LOOKS = (0.5, 2.0)
"""Seconds before the first and the second look whether there is nothing to connect to any more."""

START = 30.0
"""Seconds that the program has to reach the node the first time."""

MOST = 256
"""Connections of this machine at the same time; one more is closed."""

PATIENCE = 60.0
"""Seconds that a connection may wait for the node, and then for the first byte of either side."""

FIRST, LONGEST = 0.5, 15.0
"""Seconds to wait before the program is started again: at first, and at most."""


def command(address: Address, python: str = "python3", *, there: bool = False) -> str:
    """Return the sh command that runs the far end on a node. `there`: a socket must exist, else the command fails."""
    size = len(SOURCE.read_bytes())
    words = ["there" if there else "unix", address] if isinstance(address, str) else ["tcp", str(address)]
    return shlex.join([python, "-c", RUN, str(size), *words])


async def in_thread(function: Callable[[], _Value]) -> _Value:
    """Call a function that blocks. If this is cancelled, the process can end while the function still runs."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_Value] = loop.create_future()

    def settle(done: Callable[[], None]) -> None:
        if not future.done():
            done()

    def call() -> None:
        done: Callable[[], None]
        try:
            done = partial(future.set_result, function())
        except BaseException as error:
            done = partial(future.set_exception, error)
        with suppress(RuntimeError):  # the loop was closed
            loop.call_soon_threadsafe(settle, done)

    threading.Thread(target=call, daemon=True).start()
    return await future


class Over(Exception):
    """The run has ended, or runs elsewhere, so there is nothing to connect to."""


class _Broken(Exception):
    """The far end sent what no far end of yurt sends."""


async def _never() -> bool:
    return False


def _size(kind: int, length: int) -> int:
    """Return how many bytes follow the head of a frame."""
    if kind not in (DATA, PACKED, PAD):
        return 0
    if length > 2 * CHUNK:  # the far end sends at most CHUNK of a connection, which packing may make longer
        raise _Broken
    return length


def _unpacked(content: bytes) -> bytes:
    """Return a part that the far end has compressed; it packs at most CHUNK bytes."""
    try:
        whole = zlib.decompressobj().decompress(content, CHUNK + 1)
    except zlib.error:
        raise _Broken from None
    if len(whole) > CHUNK:
        raise _Broken
    return whole


async def _rest(stream: asyncio.StreamReader) -> bytes:
    """Return what a program that has ended left in a pipe, which a process in the background may keep open."""
    with suppress(TimeoutError, ConnectionError):
        async with asyncio.timeout(FIRST):
            return await stream.read()
    return b""


class Tunnel:
    """Accepts connections and carries them to the node while `run` is running."""

    def __init__(
        self,
        start: Callable[[], list[str]],
        *,
        is_over: Callable[[], Awaitable[bool]] = _never,
        has_other: Callable[[], bool] = lambda: False,
        on_word: Callable[[str], None] = lambda _text: None,
    ) -> None:
        """`start` returns the program that runs `command` on the node; it may raise YurtError.

        `is_over` says, after the connection was lost, that there is nothing to connect to any more. `has_other` is
        asked if the node was never reached: whether `start` returns another program from now on.
        """
        self._start, self._is_over, self._has_other, self._on_word = start, is_over, has_other, on_word
        self._links: dict[int, _Link] = {}
        self._numbers = self._open = 0
        self._reached = False
        """Whether the far end has ever been reached."""
        self._up = asyncio.Event()
        self._padding = b""
        """What follows the last bytes of a request; the far end says how long it has to be."""
        self._to_pad: asyncio.TimerHandle | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._limit: asyncio.Timeout | None = None
        """When the far end counts as lost."""

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection of this machine. One that says nothing, or too many at once, are closed."""
        self._open += 1
        try:
            if self._open > MOST:
                return
            async with asyncio.timeout(PATIENCE):
                await self._up.wait()
            self._numbers += 1
            link = _Link(self._numbers, writer)
            self._links[link.number] = link
            self._send(OPEN, link.number)
            silent = asyncio.get_running_loop().call_later(PATIENCE, link.end_if_silent)
            try:
                await asyncio.gather(self._upwards(link, reader), link.downwards(self._send))
            finally:
                silent.cancel()
                if self._links.pop(link.number, None) is not None:
                    self._send(CLOSE, link.number)
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:
            pass  # the loop ends; in Python 3.11, asyncio prints a traceback if this task ends as a cancelled one
        finally:
            self._open -= 1
            writer.close()

    async def first(self, then: Callable[[], None]) -> None:
        """Wait until the node is reached, call this once, and wait forever."""
        await self._up.wait()
        then()
        await asyncio.Event().wait()

    async def run(self) -> None:
        """Keep the program running until this is cancelled. Over: there is nothing to connect to any more."""
        pause, lost = FIRST, False
        while True:
            try:
                argv = await in_thread(self._start)
                process = await self._started(argv)
            except YurtError as error:
                if not self._reached:
                    raise
                why = error.message
            else:
                try:
                    if await self._serve(process, lost=lost):
                        pause, lost = FIRST, False
                finally:
                    why = await self._ended(process)
                if not self._reached and self._has_other():
                    continue
                if not self._reached and await self._is_over():
                    raise Over
                if not self._reached:
                    raise RefusedError(f"cannot reach the node{why and f': {why}'}", code="run-not-running")
                for wait in LOOKS[: 1 if lost else 2]:  # a scheduler needs a moment to see the end of a job
                    await asyncio.sleep(wait)
                    if await self._is_over():
                        raise Over
            if not lost:
                self._on_word(f"the connection to the node is lost{why and f' ({why})'}; connecting again")
            lost = True
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST)

    async def _started(self, argv: list[str]) -> asyncio.subprocess.Process:
        """Start the program. If this is cancelled, no process stays."""
        starting = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        )
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            await self._ended(await starting)
            raise

    async def _serve(self, process: asyncio.subprocess.Process, *, lost: bool) -> bool:
        """Pass frames on until the program ends or no longer responds; return whether it reached the node."""
        reached = False
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(SOURCE.read_bytes())
        reader = process.stdout
        with suppress(asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError, ConnectionError, _Broken):
            async with asyncio.timeout(SILENT if self._reached else START):
                await reader.readuntil(MAGIC)
            self._writer = process.stdin
            self._reached = reached = True
            self._up.set()
            if lost:
                self._on_word("the connection to the node is open again")
            beat = asyncio.create_task(self._beat())
            try:
                while True:
                    async with asyncio.timeout(SILENT) as self._limit:
                        kind, number, length = HEAD.unpack(await reader.readexactly(HEAD.size))
                        content = await reader.readexactly(_size(kind, length))
                    if kind == PACKED:
                        kind, content = DATA, _unpacked(content)
                    if kind == PAD:
                        self._padding = HEAD.pack(PAD, 0, length) + content
                    elif link := self._links.get(number):
                        link.take(kind, length, content)
            finally:
                beat.cancel()
        return reached

    async def _ended(self, process: asyncio.subprocess.Process) -> str:
        """End the program and all connections; return why it ended."""
        silent = self._limit is not None and self._limit.expired()
        self._up.clear()
        self._writer, self._limit, self._padding = None, None, b""
        for link in self._links.values():
            link.take(CLOSE, 0, b"")
        self._links.clear()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.close()
        # The rest of its frames, too: until that is read, asyncio sees neither the end of the pipe nor of the process.
        _frames, output = await asyncio.gather(_rest(process.stdout), _rest(process.stderr))
        while process.returncode is None:  # wait() of some versions of Python waits for the pipes as well
            await asyncio.sleep(0.01)
        # What a program has printed that is ended here is no reason, but the greeting of the site.
        return "no response" if silent else output.decode(errors="replace").strip().rpartition("\n")[2].strip()

    async def _beat(self) -> None:
        loop, before = asyncio.get_running_loop(), time.time()
        while True:
            await asyncio.sleep(BEAT)
            self._send(PING, 0)
            # The clock of timeouts stops while the machine sleeps, and connections rarely survive that.
            if time.time() - before > 2 * BEAT and self._limit is not None:
                with suppress(RuntimeError):  # it is just being renewed
                    self._limit.reschedule(loop.time() + AWAKE)
            before = time.time()

    async def _upwards(self, link: _Link, reader: asyncio.StreamReader) -> None:
        """Send what this machine writes."""
        while part := await reader.read(CHUNK):
            link.silent = False
            while part:
                room = await link.room()
                self._send(DATA, link.number, min(room, len(part)), part[:room])
                link.credit -= min(room, len(part))
                part = part[room:]
            if self._writer is not None:
                await self._writer.drain()
        self._send(END, link.number)

    def _send(self, kind: int, number: int, length: int = 0, content: bytes = b"") -> None:
        if self._writer is not None:
            self._writer.write(HEAD.pack(kind, number, length) + content)
            if self._padding and self._to_pad is None:
                self._to_pad = asyncio.get_running_loop().call_later(PAUSE, self._pad)

    def _pad(self) -> None:
        self._to_pad = None
        if self._writer is not None:
            self._writer.write(self._padding)


class _Link:
    """One connection of this machine."""

    def __init__(self, number: int, writer: asyncio.StreamWriter) -> None:
        self.number, self.credit = number, WINDOW
        self._writer = writer
        self._more = asyncio.Event()
        self._parts: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._gone = False
        self._waiting = 0
        """Bytes that the far end has sent without credit."""
        self.silent = True
        """Whether no side has sent a byte."""

    def end_if_silent(self) -> None:
        if self.silent:
            self.take(CLOSE, 0, b"")
            self._writer.transport.abort()

    def take(self, kind: int, length: int, content: bytes) -> None:
        """Receive a frame of the far end."""
        if kind == DATA:
            self.silent = False
            self._waiting += len(content)
            if self._waiting > WINDOW:  # it sends at most that before it gets credit
                raise _Broken
            self._parts.put_nowait(content)
        elif kind == CREDIT:
            self.credit += length
            self._more.set()
        else:
            self._gone = self._gone or kind == CLOSE
            self._more.set()
            self._parts.put_nowait(None)

    async def room(self) -> int:
        """Wait until the far end accepts more bytes; return how many."""
        while self.credit <= 0 and not self._gone:
            self._more.clear()
            await self._more.wait()
        if self._gone:
            raise ConnectionResetError
        return self.credit

    async def downwards(self, send: Callable[..., None]) -> None:
        """Write what the node sends."""
        passed = 0
        while (part := await self._parts.get()) is not None:
            self._writer.write(part)
            await self._writer.drain()
            passed += len(part)
            if passed >= WINDOW // 4:
                send(CREDIT, self.number, passed)
                self._waiting -= passed
                passed = 0
        if self._gone:
            raise ConnectionResetError
        if self._writer.can_write_eof():
            self._writer.write_eof()
