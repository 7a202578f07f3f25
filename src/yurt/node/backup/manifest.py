"""Version files `v<N>` and full indexes `i<N>-<random>`: what a version has, and in which packs.

A version names one index and lists what differs from it, so that it needs these two files and no other version.
"""

import hashlib
import json
import os
import re
import zlib
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from yurt.node.backup import bounds, storage
from yurt.node.backup.entries import Entry, from_row, raw, row, text
from yurt.node.backup.errors import BackupError, DamagedError, shown

FORMAT = 1
MARK = ', "check": "'
FIRST_READ = 1 << 16
LARGEST = 4 << 30
"""Bytes of the rows of one file: a small one may expand to all of the memory."""
FILE = re.compile(r"[pi][A-Za-z0-9][A-Za-z0-9._-]*")
"""The names of packs and indexes."""

Header = Dict[str, Any]


class Pack(NamedTuple):
    """One pack file: its name, its size and CRC-32 on disk, the bytes and number of the files in it.

    The CRC is of the file that was read back when it was written. Zstd, lz4 and gzip add a checksum of the content as
    they got it from tar, which they compare whenever they expand a pack. A cryptographic hash would protect only from
    someone who can write to this folder, and so to the versions too; on some processors it takes longer than tar.
    """

    name: str
    size: int
    sum: str
    content: int
    members: int


class Manifest(NamedTuple):
    """One version, complete."""

    header: Header
    entries: Dict[bytes, Entry]
    packs: Dict[str, Pack]
    differing: Set[bytes]
    """The paths that the version file itself lists; all others are as in the index."""


def encode(header: Header, rows: List[Any]) -> bytes:
    """Return a file: one line of JSON, which ends with a checksum of itself, then the compressed rows."""
    body = zlib.compress(json.dumps(rows, separators=(",", ":")).encode("ascii"), 1)
    first = json.dumps(dict(header, format=FORMAT, body=hashlib.sha256(body).hexdigest(), length=len(body)))
    return (first[:-1] + MARK + _check(first[:-1]) + '"}\n').encode("ascii") + body


def decode(content: bytes, name: str) -> Tuple[Header, List[Any]]:
    """Return header and rows of a file. DamagedError names the file if it is damaged."""
    header, body = _parts(content, name)
    expand = zlib.decompressobj()
    rows: List[Any] = json.loads(expand.decompress(body, LARGEST).decode("ascii"))
    return header, rows


def is_sound(folder: str, name: str) -> bool:
    """Return whether a version file or an index is there as it was written."""
    path = os.path.join(folder, name)
    try:
        content = storage.read(path)
        return content is not None and bool(_parts(content, path))
    except (DamagedError, OSError):
        return False


def _parts(content: bytes, name: str) -> Tuple[Header, bytes]:
    line, _, body = content.partition(b"\n")
    header = decode_header(line, name)
    if len(body) != header["length"] or hashlib.sha256(body).hexdigest() != header["body"]:
        raise DamagedError(name)
    return header, body


def decode_header(line: bytes, name: str) -> Header:
    try:
        written = line.decode("ascii")
        header: Header = json.loads(written)
    except ValueError:
        raise DamagedError(name) from None
    start, mark, _ = written.rpartition(MARK)
    if not mark or header.get("check") != _check(start):
        raise DamagedError(name)
    if header["format"] != FORMAT:
        raise BackupError("%s has format %s; this yurt reads format %d" % (shown(name), header["format"], FORMAT))
    return header


def read_header(folder: str, number: int) -> Optional[Header]:
    """Return the first line of a version; None if there is no such version."""
    path = os.path.join(folder, "v%d" % number)
    start = storage.read(path, FIRST_READ)
    if start is not None and b"\n" not in start:
        start = storage.read(path)
    return None if start is None else decode_header(start.partition(b"\n")[0], path)


def read(folder: str, number: int) -> Manifest:
    """Return a version. BackupError if there is none; DamagedError if a file of it is damaged or missing.

    Its paths are below one folder, and what it needs are files of this folder, also if somebody else wrote it.
    """
    path = os.path.join(folder, "v%d" % number)
    content = storage.read(path)
    if content is None:
        raise BackupError("there is no version v%d in %s; list them with `yurt dev backups`" % (number, shown(folder)))
    with _well_formed(path):
        header, rows = decode(content, path)
        index = os.path.join(folder, _file(header["index"]))
        packs = {_file(each[0]): _pack(*each) for each in header["packs"]}
        names = list(packs)
    base = storage.read(index)
    if base is None:
        raise DamagedError(index, "missing")
    with _well_formed(index):
        index_header, index_rows = decode(base, index)
        entries = {raw(each[0]): from_row(each, index_header["packs"]) for each in index_rows}
    with _well_formed(path):
        for each in rows:
            if len(each) > 1:
                entries[raw(each[0])] = from_row(each, names)
            else:
                entries.pop(raw(each[0]), None)
        bounds.check(entries, packs)
        differing = {raw(each[0]) for each in rows}
    return Manifest(header, entries, packs, differing)


@contextmanager
def _well_formed(path: str) -> Iterator[None]:
    """Turn what a file of an unknown form raises into a DamagedError: its checksum may be right."""
    try:
        yield
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError, zlib.error):
        raise DamagedError(path) from None


def _file(name: str) -> str:
    """Return the name of an index or a pack. ValueError: it may be a path out of the folder."""
    if not FILE.fullmatch(name):
        raise ValueError
    return name


def _pack(name: str, size: int, checksum: str, content: int, number: int) -> Pack:
    return Pack(name, int(size), str(checksum), int(content), int(number))


def version_file(header: Header, packs: Dict[str, Pack], entries: Dict[bytes, Entry], differing: Set[bytes]) -> bytes:
    """Return the content of a version file."""
    names = sorted(packs)
    numbers = {name: number for number, name in enumerate(names)}
    rows = [row(path, entries[path], numbers) if path in entries else [text(path)] for path in sorted(differing)]
    return encode(dict(header, packs=[list(packs[name]) for name in names]), rows)


def index_file(entries: Dict[bytes, Entry]) -> bytes:
    """Return the content of a full index."""
    names = sorted({entry.pack for entry in entries.values() if entry.pack})
    numbers = {name: number for number, name in enumerate(names)}
    return encode({"packs": names}, [row(path, entry, numbers) for path, entry in entries.items()])


def _check(line: str) -> str:
    return hashlib.sha256(line.encode("ascii")).hexdigest()[:16]
