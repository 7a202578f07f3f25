"""Scalars of an event file of TensorBoard, read without TensorBoard. Pure.

An event file is a sequence of records: length (8 bytes), checksum of the length (4), an Event in protobuf, checksum of
the Event (4). Of an Event, only its time, its step and its scalars are read.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import NamedTuple

SCALARS = b"scalars"
"""The plugin whose tensors are scalars."""


class Scalar(NamedTuple):
    """One value in an event file."""

    tag: str
    step: int
    time: float
    value: float


def read(data: bytes, offset: int = 0) -> tuple[list[Scalar], int]:
    """Return the scalars of the complete records from `offset` on, and where the next record begins.

    A record that is incomplete is left for the next call. Nothing can be read after a damaged length: the offset then
    stays before it. A record whose content is damaged is skipped.
    """
    found: list[Scalar] = []
    size = len(data)
    while offset + 12 <= size:
        header = data[offset : offset + 8]
        if data[offset + 8 : offset + 12] != _checksum(header):
            break
        end = offset + 12 + _LENGTH(header)[0]
        if end + 4 > size:
            break
        with suppress(ValueError, IndexError, struct.error):
            _event(data, offset + 12, end, found)
        offset = end + 4
    return found, offset


_LENGTH = struct.Struct("<Q").unpack
_DOUBLE = struct.Struct("<d").unpack_from
_FLOAT = struct.Struct("<f").unpack_from

_FIXED64, _BYTES, _FIXED32 = 1, 2, 5
"""Types of fields in protobuf, besides numbers of variable length, which are 0."""


def _event(data: bytes, at: int, end: int, found: list[Scalar]) -> None:
    """Event: 1 wall_time (double), 2 step (int64), 5 summary."""
    time, step = 0.0, 0
    summaries = []
    while at < end:
        key = data[at]
        if key == 0x09:
            time = _DOUBLE(data, at + 1)[0]
            at += 9
        elif key == 0x10:
            step, at = _number(data, at + 1)
        elif key == 0x2A:
            length, at = _number(data, at + 1)
            summaries.append((at, at + length))
            at += length
        else:
            at = _after(data, at)
    if at > end:
        raise ValueError("a field is longer than its record")
    step = _signed(step)
    for start, stop in summaries:
        if stop > end:
            raise ValueError("a summary is longer than its record")
        at = start
        while at < stop:
            if data[at] == 0x0A:
                length, at = _number(data, at + 1)
                found += _value(data, at, at + length, step, time)
                at += length
            else:
                at = _after(data, at)


def _value(data: bytes, at: int, end: int, step: int, time: float) -> list[Scalar]:
    """Return the scalar of a Summary.Value, if it is one: 1 tag, 2 simple_value (float), 8 tensor, 9 metadata."""
    tag = b""
    value: float | None = None
    tensor: tuple[int, int] | None = None
    plugin = b""
    while at < end:
        key = data[at]
        if key == 0x0A:
            length, at = _number(data, at + 1)
            tag = data[at : at + length]
            at += length
        elif key == 0x15:
            value = _FLOAT(data, at + 1)[0]
            at += 5
        elif key == 0x42:
            length, at = _number(data, at + 1)
            tensor = (at, at + length)
            at += length
        elif key == 0x4A:
            length, at = _number(data, at + 1)
            plugin = _plugin(data, at, at + length)
            at += length
        else:
            at = _after(data, at)
    if value is None and tensor is not None and plugin in (b"", SCALARS):
        value = _tensor(data, *tensor)
    return [Scalar(_text(tag), step, time, value)] if value is not None and tag else []


def _plugin(data: bytes, at: int, end: int) -> bytes:
    """SummaryMetadata: 1 plugin_data, whose field 1 is the name of the plugin."""
    for field, start, stop in _parts(data, at, end):
        if field == 1:
            for below, first, last in _parts(data, start, stop):
                if below == 1:
                    return data[first:last]
    return b""


def _tensor(data: bytes, at: int, end: int) -> float | None:
    """Return the number in a TensorProto; None if it has none or several, or another type.

    TensorProto: 1 dtype, 2 shape, 4 tensor_content, then one field for the numbers of each type. Without a shape, or
    with dimensions of size 1, it is one number.
    """
    dtype, content = 0, b""
    packed: dict[int, bytes] = {}
    while at < end:
        key, after = _number(data, at)
        field, kind = key >> 3, key & 7
        if field == 1 and kind == 0:
            dtype, at = _number(data, after)
            continue
        if kind == _BYTES:
            length, start = _number(data, after)
            at = start + length
        else:
            start, at = after, _after(data, at)
        if field == 2 and not _single(data, start, at):
            return None
        if field == 4:
            content = data[start:at]
        elif field not in packed:
            packed[field] = data[start:at]
    if dtype not in _TYPES:
        return None
    each = _TYPES[dtype]
    size = struct.calcsize(each.format)
    if content:
        return float(struct.unpack(each.format, content)[0]) if len(content) == size else None
    return each.packed(packed[each.field]) if each.field in packed else None


def _single(data: bytes, at: int, end: int) -> bool:
    """Whether a TensorShapeProto (2 dim, whose field 1 is its size) has room for one number only."""
    for field, start, stop in _parts(data, at, end):
        if field == 2:
            size = 0
            if start < stop and data[start] == 0x08:
                size, _after_size = _number(data, start + 1)
            if size != 1:
                return False
    return True


class _Type(NamedTuple):
    """A type of numbers: in tensor_content, and the field of its own."""

    format: str
    field: int
    packed: Callable[[bytes], float]


def _integer(part: bytes) -> float:
    return float(_signed(_number(part, 0)[0]))


def _unsigned(part: bytes) -> float:
    return float(_number(part, 0)[0])


def _half(part: bytes) -> float:
    bits = _number(part, 0)[0] & 0xFFFF
    return float(struct.unpack("<e", struct.pack("<H", bits))[0])


_TYPES = {
    1: _Type("<f", 5, lambda part: float(_FLOAT(part)[0])),
    2: _Type("<d", 6, lambda part: float(_DOUBLE(part)[0])),
    3: _Type("<i", 7, _integer),
    4: _Type("<B", 7, _integer),
    5: _Type("<h", 7, _integer),
    6: _Type("<b", 7, _integer),
    9: _Type("<q", 10, _integer),
    10: _Type("<?", 11, _integer),
    17: _Type("<H", 7, _integer),
    19: _Type("<e", 13, _half),
    22: _Type("<I", 16, _unsigned),
    23: _Type("<Q", 17, _unsigned),
}
"""By the number of the type: float, double, int32, uint8, int16, int8, int64, bool, uint16, half, uint32, uint64."""


def _parts(data: bytes, at: int, end: int) -> list[tuple[int, int, int]]:
    """Return the fields of a message that are bytes or messages: number, first and last position."""
    found = []
    while at < end:
        key, after = _number(data, at)
        if key & 7 == _BYTES:
            length, start = _number(data, after)
            at = start + length
            found.append((key >> 3, start, at))
        else:
            at = _after(data, at)
    return found


def _after(data: bytes, at: int) -> int:
    """Return where the field after the one at this position begins."""
    key, at = _number(data, at)
    kind = key & 7
    if kind == 0:
        return _number(data, at)[1]
    if kind == _FIXED64:
        return at + 8
    if kind == _FIXED32:
        return at + 4
    if kind == _BYTES:
        length, at = _number(data, at)
        return at + length
    raise ValueError(f"unknown type of field: {kind}")


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable length, and the position after it."""
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    found, shift = byte & 0x7F, 7
    while True:
        at += 1
        byte = data[at]
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return found & 0xFFFFFFFFFFFFFFFF, at + 1
        shift += 7
        if shift > 63:
            raise ValueError("a number is too long")


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


@cache
def _text(tag: bytes) -> str:
    return tag.decode(errors="replace")


@cache
def _checksum(header: bytes) -> bytes:
    """Return the checksum of a length: CRC-32C, rotated, plus a constant. Cached, since few lengths occur."""
    crc = 0xFFFFFFFF
    for byte in header:
        crc ^= byte
        for _bit in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)
