"""Forwards ports and sockets of this machine to programs on a node, through one tunnel each, until the run ends."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from yurt.errors import RefusedError, UserError
from yurt.model.progress import without_slow
from yurt.node.tunnel import Address
from yurt.services.tunnel import Over, Tunnel, command, in_thread

Program = Callable[[str], list[str]]
"""Returns the program of this machine that runs an sh command on the node. YurtError: not now."""


def check(port: int) -> None:
    """UserError unless --local can be this number."""
    if port not in range(65536):
        raise UserError(f"--local must be a port up to 65535, not {port}", code="usage", hint="try `--local 8080`")


def listen(port: int) -> int:
    """Return a port of this machine's loopback that is free: this one, or any. RefusedError if it is in use."""
    import socket

    check(port)
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            why = "needs root" if isinstance(error, PermissionError) else "is in use"
            raise RefusedError(
                f"port {port} of this machine {why}", code="port-in-use", hint="choose another one with `--local`"
            ) from None
        found: int = probe.getsockname()[1]
        return found


def forward(
    program: Program,
    targets: Sequence[tuple[int | Path, Address]],
    *,
    is_over: Callable[[], bool],
    interval: float,
    on_open: Callable[[], None],
    on_word: Callable[[str], None],
    has_other: Callable[[], bool] | None = None,
) -> None:
    """Forward ports and sockets of this machine to addresses on the node until `is_over`, or Ctrl-C.

    `is_over` is asked at this interval, and when a connection is lost. `has_other` is asked if the node cannot be
    reached, or if sockets there are not seen: whether `program` returns another way to it from now on.
    """
    turn = asyncio.Lock()

    async def over() -> bool:
        async with turn:
            return await in_thread(is_over)

    async def watch() -> None:
        await asyncio.sleep(min(1.0, interval))  # what it says comes after what `on_open` says
        while not await over():
            await asyncio.sleep(interval)
        raise Over

    def tunnel(words: str) -> Tunnel:
        return Tunnel(lambda: program(words), is_over=over, has_other=has_other or (lambda: False), on_word=on_word)

    with ExitStack() as stack:

        def opened() -> None:
            stack.enter_context(without_slow())  # from now on, `on_word` hears of a lost connection, once
            on_open()

        ways = [(here, tunnel(command(address, there=has_other is not None))) for here, address in targets]
        _run(_forward(ways, watch(), opened))


def _run(forwarding: Coroutine[None, None, None]) -> None:
    try:
        asyncio.run(forwarding)
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _forward(
    tunnels: Sequence[tuple[int | Path, Tunnel]], watch: Coroutine[None, None, None], on_open: Callable[[], None]
) -> None:
    with _cancelled_by_signals():
        await _until_over(tunnels, watch, on_open)


@contextmanager
def _cancelled_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP cancel this task, as asyncio does for Ctrl-C: programs of the tunnels must end."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def cancel(*_signal: object) -> None:
        loop.call_soon_threadsafe(task.cancel)

    before = {number: signal.signal(number, cancel) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def _until_over(
    tunnels: Sequence[tuple[int | Path, Tunnel]], watch: Coroutine[None, None, None], on_open: Callable[[], None]
) -> None:
    tasks = [asyncio.create_task(watch)]
    servers = []
    for here, tunnel in tunnels:
        if isinstance(here, Path):
            here.unlink(missing_ok=True)
            servers.append(await asyncio.start_unix_server(tunnel.accept, here))
        else:
            servers.append(await asyncio.start_server(tunnel.accept, "127.0.0.1", here))
        tasks.append(asyncio.create_task(tunnel.run()))
        tasks.append(asyncio.create_task(tunnel.first(on_open)))
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            if not task.cancelling():  # a second request would interrupt the end of its program
                task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        for server in servers:
            server.close()
    for outcome in outcomes:
        if isinstance(outcome, Exception) and not isinstance(outcome, Over):
            raise outcome
