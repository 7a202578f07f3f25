"""Reads which files a log of W&B names: `wandb sync` uploads them, and the log comes from a site.

A log is one of LevelDB, with one protobuf message of type `Record` (wandb_internal.proto) for each record.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from yurt.model.site_words import shown

HEAD = struct.pack("<4sHB", b":W&B", 0xBEE1, 0)
BLOCK = 1 << 15
CHUNK = struct.Struct("<IHB")
"""Checksum, length and kind of a part of a record."""
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4

SAVED = "a file to save"
Fields = dict[int, "Fields | str"]
NAMES: Fields = {
    6: {1: {1: SAVED}},
    8: {12: {4: {6: "a file of an artifact"}, 5: "the manifest of an artifact"}},
    9: {1: "a folder of TensorBoard", 3: "a folder of TensorBoard", 5: "a folder of TensorBoard"},
}
"""The fields of a `Record` with the path of a file: files, artifact and tbrecord."""
REQUEST = 100
"""The field of a `Record` that makes wandb do something at once, such as download. wandb writes none into a log."""


def problem(log: Path, files: Path, own: Path) -> str:
    """Return why a log must not be given to wandb; an empty text if it may be.

    wandb finds relative paths in `files`. It notes artifacts with their paths on the site: most do not exist here, or
    are copies in the folder `own`, if the homes are one.
    """
    try:
        with log.open("rb") as stream:
            for record in _records(stream):
                for what, name in _named(record, NAMES):
                    path = os.path.normpath(files / os.fsdecode(name))
                    inside = path.startswith((f"{files}/", f"{own}/"))
                    if not inside and (what == SAVED or os.path.lexists(path)):
                        return f"its log names {shown(path)} of this machine as {what}"
    except (ValueError, RecursionError) as error:
        return f"its log cannot be read: {error}"
    return ""


def _records(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the records up to the end, which may be cut off. ValueError if something else is wrong."""
    head = stream.read(len(HEAD))
    if not HEAD.startswith(head):
        raise ValueError("it does not begin as one")
    found, block = list[bytes](), stream.read(BLOCK - len(HEAD))
    while block:
        following = stream.read(BLOCK)
        for kind, content in _parts(block, last=not following.strip(b"\0")):
            if kind in (FULL, FIRST):
                found = []
            found.append(content)
            if kind in (FULL, LAST):
                yield b"".join(found)
                found = []
        block = following


def _parts(block: bytes, *, last: bool) -> Iterator[tuple[int, bytes]]:
    """Yield the parts of records in a block, and their kinds. Only the last block may be cut off."""
    at = 0
    while at + CHUNK.size <= len(block):
        checksum, length, kind = CHUNK.unpack_from(block, at)
        content = block[at + CHUNK.size : at + CHUNK.size + length]
        at += CHUNK.size + length
        sound = len(content) == length and zlib.crc32(content, zlib.crc32(bytes([kind]))) == checksum
        if not sound or kind not in (FULL, FIRST, MIDDLE, LAST):
            if last:
                return
            raise ValueError("it is damaged")
        yield kind, content


def _named(message: bytes, fields: Fields) -> Iterator[tuple[str, bytes]]:
    """Yield the values of these fields of a message, each with what it is."""
    for number, value in _values(message):
        inner = fields.get(number)
        if number == REQUEST and fields is NAMES:
            raise ValueError("it contains a request")
        if isinstance(inner, str):
            yield inner, value
        elif inner is not None:
            yield from _named(value, inner)


def _values(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the fields of a message that have a length: texts and messages."""
    at = 0
    while at < len(message):
        key, at = _number(message, at)
        kind = key & 7
        if kind == 0:
            _value, at = _number(message, at)
        elif kind == 1:
            at += 8
        elif kind == 5:
            at += 4
        elif kind == 2:
            length, at = _number(message, at)
            if at + length > len(message):
                raise ValueError("a record ends too early")
            yield key >> 3, message[at : at + length]
            at += length
        else:
            raise ValueError("a record has an unknown form")


def _number(message: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable length, and where it ends."""
    found = shift = 0
    while at < len(message) and shift < 64:
        byte = message[at]
        found, shift, at = found | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return found, at
    raise ValueError("a record ends too early")
