"""Bodies of HTTP/1 messages, passed on piece by piece."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

PIECE = 1 << 16

LONGEST_LINE = 1024
"""Maximum bytes of the line before a chunk, and of a line after the last one."""

_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[\t\x20-\x7e]*)?\r\n")


class BadBodyError(ValueError):
    """A body is shorter than announced, or its chunks are invalid."""


async def pieces(reader: asyncio.StreamReader, length: int | None, *, chunked: bool) -> AsyncIterator[bytes]:
    """Yield the content of a body: of this length, in chunks, or until the end. BadBodyError."""
    if chunked:
        async for piece in _chunks(reader):
            yield piece
        return
    left = length
    while left is None or left > 0:
        piece = await reader.read(PIECE if left is None else min(PIECE, left))
        if not piece:
            if left is not None:
                raise BadBodyError("the connection ended within the body")
            return
        if left is not None:
            left -= len(piece)
        yield piece


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while True:
        found = _SIZE.fullmatch(await _line(reader))
        if found is None:
            raise BadBodyError("the size of a chunk is invalid")
        size = int(found[1], 16)
        if not size:
            break
        async for piece in pieces(reader, size, chunked=False):
            yield piece
        if await reader.readexactly(2) != b"\r\n":
            raise BadBodyError("a chunk is longer than its size")
    for _trailer in range(100):
        if await _line(reader) == b"\r\n":
            return
    raise BadBodyError("there are too many trailers")


async def _line(reader: asyncio.StreamReader) -> bytes:
    line = await reader.readuntil(b"\r\n")
    if len(line) > LONGEST_LINE:
        raise BadBodyError("a line is too long")
    return line


def chunk(piece: bytes) -> bytes:
    """Return a piece of content as a chunk."""
    return b"%x\r\n%b\r\n" % (len(piece), piece)


LAST = b"0\r\n\r\n"
"""The end of a body in chunks."""
