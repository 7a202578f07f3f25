"""A small web front on this machine for a server on a unix socket: only the user can open it.

TensorBoard and MLflow let everyone in who reaches their port, and every user of a machine reaches its ports. So such a
server listens on a socket in a private folder, and this front forwards to it what `access.py` lets pass.
"""

from __future__ import annotations

import asyncio
import contextlib
import html
import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Self

from yurt.pages import bodies, heads
from yurt.pages.access import Access, Enter, Forward, Refuse, without_own_cookies
from yurt.pages.bodies import BadBodyError
from yurt.pages.heads import BadHeadError, RequestHead, ResponseHead

LARGEST_HEAD = 1 << 16
"""Maximum bytes of the head of a message."""

PATIENCE = 15.0
"""Seconds that a client has to send the head of its first request, or the next piece of a body."""

IDLE = 75.0
"""Seconds that a client who was let in may keep a connection open without a request."""

MOST = 256
"""Maximum number of connections."""

IDLE_SERVER = 3.0
"""Seconds that a connection to the server is kept for the next request."""

_GONE = (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError, BadBodyError)
"""What can go wrong on a connection."""


class Front:
    """Serves the server on a unix socket at a URL with a token, in a thread, while the context lasts."""

    def __init__(
        self,
        server: Path,
        name: str,
        *,
        died: Callable[[], bool] = lambda: False,
        port: int = 0,
        settings: Mapping[str, str] = MappingProxyType({}),
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`name` is the server's name, for messages; `died` says whether it has ended. Port 0 is a free one.

        `settings`: what the browser's storage for this page contains at first. `headers`: what the server gets with
        each request instead of what the client says, such as a password.
        """
        self._server, self._name, self._died, self._wanted = server, name, died, port
        self.settings, self.headers = settings, headers
        self._answered = False
        self._clients: set[asyncio.Task[None]] = set()
        self._free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter, asyncio.TimerHandle]] = []
        """Connections to the server without a request."""
        self._ready = threading.Event()
        self._failed: OSError | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> Self:
        """Listen. OSError if no port is free."""
        self._thread.start()
        self._ready.wait()
        if self._failed is not None:
            raise self._failed
        return self

    def __exit__(self, *_error: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(5)

    @property
    def url(self) -> str:
        """The address with the token."""
        return self._access.url

    @property
    def port(self) -> int:
        return self._access.port

    async def _serve(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        try:
            listening = await asyncio.start_server(self._client, "127.0.0.1", self._wanted, limit=LARGEST_HEAD)
        except OSError as error:
            self._failed = error
            self._ready.set()
            return
        self._access = Access(listening.sockets[0].getsockname()[1])
        self._ready.set()
        await self._over.wait()
        listening.close()
        await asyncio.sleep(0)  # a connection that was just accepted: its task must begin, so that it is closed
        for task in self._clients:
            task.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)
        while self.kept() is not None:
            pass

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        try:
            if len(self._clients) <= MOST:
                await _Connection(self, reader, writer).serve()
        except _GONE:
            pass  # the client, or the server, has closed the connection
        except asyncio.CancelledError:
            writer.transport.abort()  # this front ends, and does not wait for clients that read slowly
        finally:
            self._clients.discard(task)
            writer.close()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the server. OSError if it does not listen."""
        found = await asyncio.open_unix_connection(str(self._server), limit=LARGEST_HEAD)
        self._answered = True
        return found

    def keep(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Keep a connection to the server for the next request."""

        def expire() -> None:
            self._free = [each for each in self._free if each[1] is not writer]
            writer.close()

        self._free.append((reader, writer, self._loop.call_later(IDLE_SERVER, expire)))

    def kept(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """Return a connection that was kept, which the server may have closed since."""
        while self._free:
            reader, writer, timer = self._free.pop()
            timer.cancel()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        return None

    def judge(self, head: RequestHead) -> Forward | Enter | Refuse:
        return self._access.judge(head)

    @property
    def cookie(self) -> str:
        return self._access.cookie

    def starts_again(self) -> None:
        """Say to clients that the server is starting until they reach it again."""
        self._answered = False

    def absent(self) -> tuple[int, str, bool]:
        """Return what to say if the server does not listen: a status, a sentence, and whether to try again."""
        if self._answered or self._died():
            return 502, f"{self._name} has ended. Start it again in the terminal.", False
        return 503, f"{self._name} is starting …", True

    def silent(self) -> str:
        """Return what to say if the server closed a connection without a response."""
        return self.absent()[1] if self._died() else f"{self._name} did not respond. Reload the page."


class _Connection:
    """One connection of a client."""

    def __init__(self, front: Front, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._front, self._reader, self._writer = front, reader, writer
        self._moved = 0.0
        """When the server sent something last."""

    async def serve(self) -> None:
        """Serve requests until the client ends the connection.

        If the client has ended it and the server sends nothing for some time, as on a site that no longer responds,
        this task is cancelled: nobody waits for the rest.
        """
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None

        async def leave() -> None:
            ended = 0.0
            while not ended or loop.time() - max(ended, self._moved) < PATIENCE:
                await asyncio.sleep(PATIENCE / 4)
                ended = ended or (loop.time() if self._reader.at_eof() else 0.0)
            task.cancel()

        leaving = asyncio.create_task(leave())
        try:
            await self._requests()
        finally:
            leaving.cancel()

    async def _requests(self) -> None:
        patience = PATIENCE
        while True:
            async with asyncio.timeout(patience):
                try:
                    raw = await self._reader.readuntil(b"\r\n\r\n")
                except asyncio.LimitOverrunError:
                    await self._say(431, "The head of the request is too large.")
                    return
            try:
                head = heads.request(raw)
                verdict = self._front.judge(head)
            except BadHeadError as error:
                await self._say(400, f"This request is not valid: {error}.")
                return
            if isinstance(verdict, Refuse):
                await self._say(403, verdict.why)
                return
            if isinstance(verdict, Enter):
                keeps = head.keeps and head.length == 0
                await self._enter(head, verdict, keeps=keeps)
            else:
                keeps = await self._forward(head.without(verdict.without), verdict.target)
            if not keeps:
                return
            patience = IDLE

    async def _enter(self, head: RequestHead, verdict: Enter, *, keeps: bool) -> None:
        """Send the cookie, and the client to the address without the token.

        After a link of another page, or of a file, a browser would not send the cookie along with a redirect.
        """
        cookie, bare = ("Set-Cookie", self._front.cookie), head.method == "HEAD"
        if verdict.linked or self._front.settings:
            script = _storing(self._front.settings)
            await self._say(
                200, "Opening …", more=[cookie], again=verdict.target, script=script, keeps=keeps, bare=bare
            )
        else:
            await self._say(303, "", more=[("Location", verdict.target), cookie], keeps=keeps, bare=bare)

    async def _forward(self, head: RequestHead, target: str) -> bool:
        """Forward a request and its response. Return whether the connection can be used again."""
        if head.method == "GET" and head.length == 0 and not head.websocket:
            return await self._get(head, target)
        try:
            reader, writer = await self._front.connect()
        except OSError:
            await self._say_absent(head, target)
            return False
        sending: asyncio.Task[None] | None = None
        try:
            writer.write(_for_server(head, target, self._front.headers))
            sending = asyncio.create_task(self._send_body(head, writer))
            try:
                answer = await self._answer(reader, head.method)
            except (*_GONE, BadHeadError):
                await self._say(502, self._front.silent())
                return False
            if answer.status == 101 and head.websocket:
                await self._pass_on(answer, reader, writer)
                return False
            known = answer.chunked or answer.length is not None
            keeps = head.keeps and known
            await self._send_answer(head, answer, reader, keeps=keeps)
            return keeps and sending.done() and sending.exception() is None
        finally:
            if sending is not None:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
            writer.close()

    async def _get(self, head: RequestHead, target: str) -> bool:
        """Forward a request that may be repeated, on a connection to the server that was kept, if there is one."""
        raw = _for_server(head, target, self._front.headers, keeps=True)
        while True:
            kept = self._front.kept()
            try:
                reader, writer = kept or await self._front.connect()
            except OSError:
                await self._say_absent(head, target)
                return False
            again = False
            try:
                writer.write(raw)
                try:
                    answer = await self._answer(reader, head.method)
                except (*_GONE, BadHeadError):
                    if kept is not None:
                        continue  # the server has closed it since
                    await self._say(502, self._front.silent())
                    return False
                known = answer.chunked or answer.length is not None
                await self._send_answer(head, answer, reader, keeps=head.keeps and known)
                again = known and answer.keeps
                return head.keeps and known
            finally:
                if again:
                    self._front.keep(reader, writer)
                else:
                    writer.close()

    async def _say_absent(self, head: RequestHead, target: str) -> None:
        """Say that the server does not listen."""
        status, text, starting = self._front.absent()
        more = [("Retry-After", "1")] if starting else []
        again = target if starting else ""
        await self._say(status, text, more=more, again=again, wait=1, bare=head.method == "HEAD")

    async def _send_body(self, head: RequestHead, writer: asyncio.StreamWriter) -> None:
        if head.length != 0 and "100-continue" in head.headers.words("expect"):
            self._writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        chunked = head.length is None
        body = bodies.pieces(self._reader, head.length, chunked=chunked)
        try:
            while True:
                async with asyncio.timeout(PATIENCE):
                    piece = await anext(body, None)
                if piece is None:
                    break
                writer.write(bodies.chunk(piece) if chunked else piece)
                await writer.drain()
            if chunked:
                writer.write(bodies.LAST)
            await writer.drain()
        except _GONE:
            writer.transport.abort()  # the server must not take half a body for a whole one
            raise

    async def _answer(self, reader: asyncio.StreamReader, method: str) -> ResponseHead:
        while True:
            answer = heads.response(await reader.readuntil(b"\r\n\r\n"), method)
            if answer.status == 101 or answer.status >= 200:
                return answer

    async def _send_answer(
        self, head: RequestHead, answer: ResponseHead, reader: asyncio.StreamReader, *, keeps: bool
    ) -> None:
        pairs = answer.headers.forwarded()
        chunked = answer.chunked and head.minor == 1
        if chunked:
            pairs.append(("Transfer-Encoding", "chunked"))
        pairs.append(("Connection", "keep-alive" if keeps else "close"))
        first = heads.written(f"HTTP/1.1 {answer.status} {answer.reason}", pairs)
        if answer.chunked or answer.length is None:
            self._writer.write(first)  # it may take a while until its body begins
            first = b""
        async for piece in bodies.pieces(reader, answer.length, chunked=answer.chunked):
            self._writer.write(first + (bodies.chunk(piece) if chunked else piece))
            first = b""
            await self._writer.drain()
            self._moved = asyncio.get_running_loop().time()
        self._writer.write(first + (bodies.LAST if chunked else b""))
        await self._writer.drain()

    async def _pass_on(self, answer: ResponseHead, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Turn the connection into a websocket: pass on all bytes, both ways, until one side ends it."""
        pairs = [*answer.headers.forwarded(), ("Connection", "Upgrade"), ("Upgrade", "websocket")]
        self._writer.write(heads.written(f"HTTP/1.1 101 {answer.reason}", pairs))
        both = [asyncio.create_task(each) for each in (_pump(reader, self._writer), _pump(self._reader, writer))]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in both:
                each.cancel()
            await asyncio.gather(*both, return_exceptions=True)

    async def _say(
        self,
        status: int,
        text: str,
        *,
        more: list[tuple[str, str]] | None = None,
        again: str = "",
        wait: int = 0,
        script: str = "",
        keeps: bool = False,
        bare: bool = False,
    ) -> None:
        """Send a page of this front, with one sentence; the browser opens `again` after some seconds, if given."""
        refresh = f'<meta http-equiv="refresh" content="{wait};url={html.escape(again)}">' if again else ""
        head = f"<!doctype html><meta charset=utf-8>{script}{refresh}<title>yurt</title>"
        page = f"{head}<p>{html.escape(text)}</p>\n"
        body = page.encode() if text else b""
        pairs = [
            *(more or []),
            ("Content-Type", "text/html; charset=utf-8"),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
            ("Connection", "keep-alive" if keeps else "close"),
        ]
        self._writer.write(heads.written(f"HTTP/1.1 {status} {REASONS[status]}", pairs) + (b"" if bare else body))
        await self._writer.drain()


REASONS = {
    200: "OK",
    303: "See Other",
    400: "Bad Request",
    403: "Forbidden",
    431: "Request Header Fields Too Large",
    502: "Bad Gateway",
    503: "Service Unavailable",
}


def _storing(settings: Mapping[str, str]) -> str:
    """Return the script that stores settings in the browser, unless it has some."""
    if not settings:
        return ""
    pairs = json.dumps(dict(settings)).replace("<", "\\u003c")
    return f"<script>for (const [k, v] of Object.entries({pairs})) localStorage[k] ??= v;</script>"


def _for_server(head: RequestHead, target: str, headers: Mapping[str, str], *, keeps: bool = False) -> bytes:
    """Return the head of a request as the server gets it."""
    own = {name.lower() for name in headers}
    pairs = [pair for pair in without_own_cookies(head.headers.forwarded()) if pair[0].lower() not in own]
    pairs += headers.items()
    if head.length is None:
        pairs.append(("Transfer-Encoding", "chunked"))
    if head.websocket:
        pairs += [("Connection", "Upgrade"), ("Upgrade", "websocket")]
    else:
        pairs.append(("Connection", "keep-alive" if keeps else "close"))
    return heads.written(f"{head.method} {target} HTTP/1.1", pairs)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(*_GONE):
        while piece := await reader.read(bodies.PIECE):
            writer.write(piece)
            await writer.drain()
