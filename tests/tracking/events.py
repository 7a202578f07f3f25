"""Event files of TensorBoard: a writer of the standard library, which also runs on nodes."""

from __future__ import annotations

import time
from pathlib import Path

WRITER = '''\
"""Writes scalars as TensorBoard's own writers do; needs only the standard library."""
import os
import struct
import time

TABLE = []
for start in range(256):
    for _bit in range(8):
        start = (start >> 1) ^ (0x82F63B78 if start & 1 else 0)
    TABLE.append(start)


def checksum(content):
    found = 0xFFFFFFFF
    for byte in content:
        found = TABLE[(found ^ byte) & 255] ^ (found >> 8)
    found ^= 0xFFFFFFFF
    return struct.pack("<I", (((found >> 15) | (found << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def record(content):
    size = struct.pack("<Q", len(content))
    return size + checksum(size) + content + checksum(content)


def varint(number):
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    made.append(number)
    return bytes(made)


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def begin():
    return record(b"\\x09" + struct.pack("<d", time.time()) + field(3, b"brain.Event:2"))


def scalar(tag, step, value):
    inner = field(1, tag.encode()) + b"\\x15" + struct.pack("<f", value)
    return record(b"\\x09" + struct.pack("<d", time.time()) + b"\\x10" + varint(step) + field(5, field(1, inner)))


class Writer:
    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        name = "events.out.tfevents.%d.%s.%d" % (time.time(), os.uname()[1], os.getpid())
        self.file = open(os.path.join(folder, name), "ab", 0)
        self.file.write(begin())

    def add(self, tag, step, value):
        self.file.write(scalar(tag, step, value))
'''

_made: dict[str, object] = {}
exec(compile(WRITER, "writer.py", "exec"), _made)


def begin() -> bytes:
    """Return the first record of an event file."""
    found: bytes = _made["begin"]()  # type: ignore[operator]
    return found


def scalar(tag: str, step: int, value: float) -> bytes:
    """Return one scalar as a record."""
    found: bytes = _made["scalar"](tag, step, value)  # type: ignore[operator]
    return found


def scalars(*values: float, tag: str = "loss", first: int = 0) -> bytes:
    """Return a record for each value, from a step on."""
    return b"".join(scalar(tag, first + at, value) for at, value in enumerate(values))


def event_name(number: int = 0) -> str:
    return f"events.out.tfevents.{int(time.time())}.host.{number}"


def add_writer(project: Path) -> None:
    """Add the module `writer` to a project."""
    (project / "writer.py").write_text(WRITER)
