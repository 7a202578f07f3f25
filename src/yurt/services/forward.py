"""Forwards ports and sockets of this machine to programs on a node, through one tunnel each, until the run ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path

from yurt.errors import RefusedError
from yurt.node.tunnel import Address
from yurt.services.tunnel import Over, Tunnel, command

Program = Callable[[str], list[str]]
"""Returns the program of this machine that runs an sh command on the node. YurtError: not now."""


def listen(port: int) -> int:
    """Return a port of this machine's loopback that is free: this one, or any. RefusedError if it is in use."""
    import socket

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
) -> None:
    """Forward ports and sockets of this machine to addresses on the node until `is_over`, or Ctrl-C.

    `is_over` is asked at this interval, and when a connection is lost.
    """
    turn = asyncio.Lock()

    async def over() -> bool:
        async with turn:
            return await asyncio.to_thread(is_over)

    async def watch() -> None:
        while not await over():
            await asyncio.sleep(interval)
        raise Over

    def tunnel(words: str) -> Tunnel:
        return Tunnel(lambda: program(words), is_over=over, on_word=on_word)

    asyncio.run(_forward([(here, tunnel(command(address))) for here, address in targets], watch(), on_open))


async def _forward(
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
        with suppress(Over):
            await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for server in servers:
            server.close()
