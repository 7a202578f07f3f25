"""Forwards ports of this machine to programs on a node, through one tunnel each, until the run ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress

from yurt.errors import RefusedError
from yurt.node.tunnel import Address
from yurt.services.tunnel import Tunnel, command

Program = Callable[[str], list[str]]
"""Returns the program of this machine that runs an sh command on the node. YurtError: not now."""


class Over(Exception):
    """The run has ended, so there is nothing to forward to."""


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
    targets: Sequence[tuple[int, Address]],
    *,
    is_over: Callable[[], bool],
    interval: float,
    on_open: Callable[[], None],
    on_word: Callable[[str], None],
) -> None:
    """Forward ports of this machine to addresses on the node until `is_over`, asked at this interval, or Ctrl-C."""

    async def watch() -> None:
        while not await asyncio.to_thread(is_over):
            await asyncio.sleep(interval)
        raise Over

    asyncio.run(_forward(program, targets, watch(), on_open, on_word))


async def _forward(
    program: Program,
    targets: Sequence[tuple[int, Address]],
    watch: Coroutine[None, None, None],
    on_open: Callable[[], None],
    on_word: Callable[[str], None],
) -> None:
    tasks = [asyncio.create_task(watch)]
    servers = []
    for port, address in targets:
        words = command(address)
        tunnel = Tunnel(lambda words=words: program(words), on_word=on_word)  # type: ignore[misc]
        servers.append(await asyncio.start_server(tunnel.accept, "127.0.0.1", port))
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
