"""Reads the headers of a tar stream as GNU tar writes it with -H posix: ustar, pax records, sparse files."""

from typing import AbstractSet, Callable, Dict, Iterator, List, NamedTuple, Optional, Union

BLOCK = 512
END = bytes(BLOCK)
REGULAR = (b"0", b"\0")
LARGEST_RECORDS = 16 << 20
"""Bytes of the records of one file: its path, its times and its extended attributes."""
KNOWN = (b"GNU.sparse.major", b"GNU.sparse.minor", b"GNU.sparse.name", b"GNU.sparse.realsize")
"""The records of GNU tar's own that it writes with -H posix; others change how it reads what follows."""

Piece = Union[bytes, memoryview]
Write = Callable[[Piece], object]


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

    def skip(self, size: int, write: Optional[Write] = None) -> None:
        """Leave bytes out, or give them to `write`."""
        while size > 0:
            if self._at == len(self._piece):
                self._next()
                self._at = 0
            part = self._piece[self._at : self._at + size]
            if write is not None:
                write(part)
            self._at += len(part)
            size -= len(part)

    def _next(self) -> None:
        self._piece = self._read()
        if not self._piece:
            raise Damaged("it ends too early")

    def drain(self) -> None:
        """Read the padding after the end marker."""
        while self._read():
            pass


class _Header(NamedTuple):
    """The header of one member. Its content follows in the stream."""

    block: bytes
    before: bytes
    """The header with its pax records, which comes before it; empty if it has none."""
    records: Dict[bytes, bytes]
    size: int

    @property
    def is_regular(self) -> bool:
        return self.block[156:157] in REGULAR

    @property
    def name(self) -> bytes:
        name = self.records.get(b"GNU.sparse.name", self.records.get(b"path"))
        if name is None:
            prefix = self.block[345:500].split(b"\0", 1)[0]
            name = self.block[:100].split(b"\0", 1)[0]
            name = prefix + b"/" + name if prefix else name
        return name[2:] if name.startswith(b"./") else name


def members(read: Callable[[], Piece]) -> Iterator[Member]:
    """Yield the regular files of an archive. Raises Damaged if it is not complete up to its end marker."""
    stream = _Stream(read)
    for header in _headers(stream):
        if header.is_regular:
            yield _member(header)
        stream.skip(_padded(header.size))


def pick(read: Callable[[], Piece], names: AbstractSet[bytes], write: Write) -> None:
    """Write an archive of the regular files of these names, for tar. Raises Damaged or ValueError.

    Somebody else may have made the archive: tar gets no link, no folder, no other name, and nothing that it reads in
    another way than this module.
    """
    stream = _Stream(read)
    for header in _headers(stream):
        left = _padded(header.size)
        if not header.is_regular or header.name not in names:
            stream.skip(left)
            continue
        _check_sum(header.block)
        _check_sum(header.before[:BLOCK])
        start = _sparse_map(stream, header) if _is_sparse(header) else b""
        write(header.before + header.block + start)
        stream.skip(left - len(start), write)
    write(END + END)


def _headers(stream: _Stream) -> Iterator[_Header]:
    """Yield the header of each member. The caller takes or skips its content before the next one."""
    records: Dict[bytes, bytes] = {}
    before = b""
    while True:
        block = stream.take(BLOCK)
        if block == END:
            stream.drain()
            return
        if block[257:262] != b"ustar":
            raise Damaged("it has an unknown header")
        size = _number(block[124:136])
        if block[156:157] == b"x":
            if not 0 < size <= LARGEST_RECORDS:
                raise Damaged("it has records of an unknown size")
            content = stream.take(_padded(size))
            records, before = _records(content[:size]), block + content
            continue
        size = _decimal(records[b"size"]) if b"size" in records else size
        if size < 0:
            raise Damaged("it has a member of a negative size")
        yield _Header(block, before, records, size)
        records, before = {}, b""


def _padded(size: int) -> int:
    return (size + BLOCK - 1) // BLOCK * BLOCK


def _check_sum(block: bytes) -> None:
    """Damaged: tar would skip this header, and take the content of the file for headers."""
    if block and sum(block) - sum(block[148:156]) + 8 * ord(" ") != _number(block[148:156]):
        raise Damaged("a header has another checksum")


def _is_sparse(header: _Header) -> bool:
    """Return whether the content begins with a map. Damaged: tar would look for one elsewhere."""
    own = {name: value for name, value in header.records.items() if name.startswith(b"GNU.")}
    if any(name not in KNOWN for name in own):
        raise Damaged("it has unknown records")
    if own and (own.get(b"GNU.sparse.major"), own.get(b"GNU.sparse.minor")) != (b"1", b"0"):
        raise Damaged("it has a sparse file of an unknown form")
    return bool(own)


def _sparse_map(stream: _Stream, header: _Header) -> bytes:
    """Return the map of a sparse file: how many parts it has, and for each where it is, and its size.

    Damaged: the parts are larger than the content, so that tar would read on in the next header.
    """
    blocks = [stream.take(BLOCK)]
    count = _decimal(blocks[0].partition(b"\n")[0])
    left = 1 + 2 * count - blocks[0].count(b"\n")
    while left > 0 and len(blocks) * BLOCK < header.size:
        blocks.append(stream.take(BLOCK))
        left -= blocks[-1].count(b"\n")
    numbers: List[int] = [_decimal(each) for each in b"".join(blocks).split(b"\n")[1 : 1 + 2 * count]]
    parts = sum(_padded(size) for size in numbers[1::2])
    if len(numbers) != 2 * count or len(blocks) * BLOCK + parts > _padded(header.size):
        raise Damaged("it has a sparse file with another size")
    return b"".join(blocks)


def _member(header: _Header) -> Member:
    records, mtime = header.records, header.records.get(b"mtime")
    return Member(
        header.name,
        _number(header.block[100:108]),
        _decimal(records[b"GNU.sparse.realsize"]) if b"GNU.sparse.realsize" in records else header.size,
        _nanoseconds(mtime) if mtime is not None else _number(header.block[136:148]) * 10**9,
    )


def _number(field: bytes) -> int:
    """Return a number of a header, read as strictly as tar does: what one of both refuses, the other one must not."""
    if field[0] in (0x80, 0xFF):
        value = int.from_bytes(field, "big")
        return value - (1 << 8 * len(field)) if field[0] == 0xFF else value & ~(0x80 << 8 * (len(field) - 1))
    digits = field.strip(b" \0") or b"0"
    if not digits.isdigit():
        raise Damaged("a header has a number of an unknown form")
    return int(digits, 8)


def _decimal(value: bytes) -> int:
    if not value.isdigit() or len(value) > 19:
        raise Damaged("it has a number of an unknown form")
    return int(value)


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
        end = at + _decimal(content[at:space])
        if not space < end <= len(content) or content[end - 1 : end] != b"\n":
            raise Damaged("it has a record of an unknown form")
        name, _, value = content[space + 1 : end - 1].partition(b"=")
        found[name] = value
        at = end
    return found
