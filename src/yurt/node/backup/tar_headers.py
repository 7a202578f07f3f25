"""Reads the headers of a tar stream as GNU tar writes it with -H posix: ustar, pax records, sparse files."""

from typing import Callable, Dict, Iterator, NamedTuple, Union

BLOCK = 512
END = bytes(BLOCK)

Piece = Union[bytes, memoryview]


class Damaged(Exception):
    """The stream is not a complete tar archive."""


class Member(NamedTuple):
    """One regular file of an archive."""

    name: bytes
    mode: int
    size: int
    mtime_ns: int


class _Stream:
    """Takes and skips bytes of what `read` returns: pieces that are valid until the next call, b"" at the end."""

    def __init__(self, read: Callable[[], Piece]) -> None:
        self._read = read
        self._piece: Piece = b""
        self._at = 0

    def take(self, size: int) -> bytes:
        found = bytes(self._piece[self._at : self._at + size])
        self._at += len(found)
        while len(found) < size:
            self._next()
            self._at = size - len(found)
            found += self._piece[: self._at]
            self._at = min(self._at, len(self._piece))
        return found

    def skip(self, size: int) -> None:
        size -= len(self._piece) - self._at
        while size > 0:
            self._next()
            size -= len(self._piece)
        self._at = len(self._piece) + size

    def _next(self) -> None:
        self._piece = self._read()
        if not self._piece:
            raise Damaged("it ends too early")

    def drain(self) -> None:
        """Read the padding after the end marker."""
        while self._read():
            pass


def members(read: Callable[[], Piece]) -> Iterator[Member]:
    """Yield the regular files of an archive. Raises Damaged if it is not complete up to its end marker."""
    stream = _Stream(read)
    records: Dict[bytes, bytes] = {}
    while True:
        block = stream.take(BLOCK)
        if block == END:
            stream.drain()
            return
        if block[257:262] != b"ustar":
            raise Damaged("it has an unknown header")
        kind = block[156:157]
        size = int(records.get(b"size", b"")) if b"size" in records else _number(block[124:136])
        padded = (size + BLOCK - 1) // BLOCK * BLOCK
        if kind == b"x":
            records = _records(stream.take(padded)[:size])
            continue
        if kind in (b"0", b"\0"):
            yield _member(block, records, size)
        stream.skip(padded)
        records = {}


def _member(block: bytes, records: Dict[bytes, bytes], size: int) -> Member:
    name = records.get(b"GNU.sparse.name") or records.get(b"path")
    if name is None:
        prefix = block[345:500].split(b"\0", 1)[0]
        name = block[:100].split(b"\0", 1)[0]
        name = prefix + b"/" + name if prefix else name
    mtime = records.get(b"mtime")
    return Member(
        name[2:] if name.startswith(b"./") else name,
        _number(block[100:108]),
        int(records.get(b"GNU.sparse.realsize", size)),
        _nanoseconds(mtime) if mtime is not None else _number(block[136:148]) * 10**9,
    )


def _number(field: bytes) -> int:
    if field[0] & 0x80:
        value = int.from_bytes(field, "big")
        return value - (1 << 8 * len(field)) if field[0] == 0xFF else value & ~(0x80 << 8 * (len(field) - 1))
    return int(field.strip(b" \0") or b"0", 8)


def _nanoseconds(value: bytes) -> int:
    sign = -1 if value.startswith(b"-") else 1
    seconds, _, fraction = value.lstrip(b"-").partition(b".")
    return sign * (int(seconds) * 10**9 + int(fraction[:9].ljust(9, b"0")))


def _records(content: bytes) -> Dict[bytes, bytes]:
    """Return pax records: each is its own length, a space, a name, `=`, a value and a newline."""
    found = {}
    at = 0
    while at < len(content):
        space = content.index(b" ", at)
        end = at + int(content[at:space])
        name, _, value = content[space + 1 : end - 1].partition(b"=")
        found[name] = value
        at = end
    return found
