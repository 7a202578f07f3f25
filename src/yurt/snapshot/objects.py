"""Writes git objects in git's formats: many into one pack, on several cores and with few syncs.

A file that has its final name is complete and on disk: it is written to a temporary file, synced and renamed.
"""

from __future__ import annotations

import os
import struct
import threading
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from yurt.model.digest import sha1
from yurt.private import opener

FOLDER_MODE = 0o40000
KINDS = {b"tree": 2, b"blob": 3}
FAR = 1 << 31
"""Pack offsets from this value on take eight bytes instead of four."""


class Writer(Protocol):
    """Stores objects."""

    def add(self, kind: bytes, content: bytes) -> bytes:
        """Store the object; return its id."""


def identify(kind: bytes, content: bytes, sha1: Callable[..., Any] = sha1) -> bytes:
    """Return the git id of an object."""
    found = sha1(b"%s %d\0" % (kind, len(content)), usedforsecurity=False)
    found.update(content)
    made: bytes = found.digest()
    return made


def loose(store: Path, id: bytes) -> Path:
    """Return the path of an object that is not in a pack."""
    name = id.hex()
    return store / "objects" / name[:2] / name[2:]


class Loose:
    """Writes each object to its own file, for few objects. Objects in `known` are already in the store."""

    def __init__(self, store: Path, aside: Path, known: frozenset[bytes] = frozenset()) -> None:
        self._store, self._aside, self._known = store, aside, known

    def add(self, kind: bytes, content: bytes) -> bytes:
        id = identify(kind, content)
        file = loose(self._store, id)
        if id not in self._known and not file.exists():
            file.parent.mkdir(mode=0o700, exist_ok=True)
            place(self._aside / id.hex(), file, deflate(b"%s %d\0" % (kind, len(content)), content))
        return id


class Pack:
    """Writes all objects to one file. Threads may add in parallel; nothing is in the store before `finish`."""

    def __init__(self, store: Path, aside: Path, known: Iterable[bytes] = ()) -> None:
        import hashlib  # takes long to import, but lets threads run in parallel

        self._sha1 = hashlib.sha1
        self._store, self._path = store, aside / "pack"
        self._known = set(known) | _packed(store)
        self._loose = set(os.listdir(store / "objects"))
        self._rows: dict[bytes, tuple[int, int]] = {}  # id -> checksum and offset
        self._lock = threading.Lock()
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC
        self._file = os.fdopen(opener(str(self._path), flags), "w+b", buffering=1 << 20)
        self._size = self._file.write(bytes(12))
        self._complete = True

    def add(self, kind: bytes, content: bytes) -> bytes:
        id = identify(kind, content, self._sha1)
        if self._is_stored(id):
            return id
        entry = entry_head(KINDS[kind], len(content)) + deflate(b"", content)
        sum = zlib.crc32(entry)
        with self._lock:
            if id not in self._rows:
                self._rows[id] = (sum, self._size)
                self._size += self._file.write(entry)
        return id

    def _is_stored(self, id: bytes) -> bool:
        if id in self._rows:
            return True
        if id in self._known or (id[:1].hex() in self._loose and loose(self._store, id).exists()):
            self._complete = False
            return True
        return False

    def finish(self, tree: str = "") -> None:
        """Move the pack into the store. Git finds a pack by its index, which is written last.

        With `tree`, all of that tree was added; the pack is named after it if it contains all of it.
        """
        if not self._rows:
            self._file.close()
            self._path.unlink()
            return
        with self._file as file:
            file.seek(0)
            file.write(struct.pack(">4sLL", b"PACK", 2, len(self._rows)))
            file.seek(0)
            check = self._sha1(usedforsecurity=False)
            while chunk := file.read(1 << 20):
                check.update(chunk)
            file.write(check.digest())
            file.flush()
            os.fsync(file.fileno())
        name = tree if self._complete and tree else check.hexdigest()
        target = self._store / "objects" / "pack" / f"pack-{name}.pack"
        self._path.rename(target)
        place(self._path, target.with_suffix(".idx"), _pack_index(self._rows, check.digest()))


def write_folders(files: Mapping[bytes, tuple[int, bytes]], writer: Writer) -> tuple[bytes, list[bytes]]:
    """Write the folders of these files (path -> mode and id) except the top one. Return its content and their ids."""
    folders: dict[bytes, list[tuple[bytes, int, bytes]]] = {b"": []}
    for path in files:
        folder = path.rpartition(b"/")[0]
        while folder not in folders:
            folders[folder] = []
            folder = folder.rpartition(b"/")[0]
    for path, (mode, id) in files.items():
        if path not in folders:  # else it became a folder during the snapshot
            folder, _, name = path.rpartition(b"/")
            folders[folder].append((name, mode, id))
    written = []
    for folder in sorted(folders.keys() - {b""}, key=lambda each: each.count(b"/"), reverse=True):
        id = writer.add(b"tree", _folder(folders[folder]))
        above, _, name = folder.rpartition(b"/")
        folders[above].append((name, FOLDER_MODE, id))
        written.append(id)
    return _folder(folders[b""]), written


def _folder(rows: list[tuple[bytes, int, bytes]]) -> bytes:
    """Encode a folder. Git sorts subfolders as if their names ended with a slash."""
    rows.sort(key=lambda row: row[0] + b"/" if row[1] == FOLDER_MODE else row[0])
    return b"".join([b"%o %s\0%s" % (mode, name, id) for name, mode, id in rows])


def deflate(head: bytes, content: bytes) -> bytes:
    """Compress with zlib at a low level; content that is already dense is stored uncompressed."""
    middle = len(content) // 2
    # 512 random bytes have about 221 distinct values; text and tables have far fewer.
    dense = len(content) > 2048 and len(set(content[middle : middle + 512])) > 200
    return zlib.compress(head + content if head else content, 0 if dense else 1)


def place(aside: Path, target: Path, content: bytes) -> None:
    """Write a file atomically, so that it is complete or absent, also after a power failure."""
    with open(aside, "wb", opener=opener) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    aside.rename(target)


def _packed(store: Path) -> set[bytes]:
    """Return the ids of all objects in packs."""
    found: set[bytes] = set()
    for index in (store / "objects" / "pack").glob("*.idx"):
        content = index.read_bytes()
        start, count = 8 + 1024, int.from_bytes(content[8 + 1020 : 8 + 1024])
        found.update(content[at : at + 20] for at in range(start, start + 20 * count, 20))
    return found


def entry_head(kind: int, size: int) -> bytes:
    """Encode kind and size for a pack entry: four bits of the size, then seven per byte."""
    first, size = kind << 4 | size & 15, size >> 4
    head = bytearray()
    while size:
        head.append(first | 128)
        first, size = size & 127, size >> 7
    head.append(first)
    return bytes(head)


def _pack_index(rows: Mapping[bytes, tuple[int, int]], check: bytes) -> bytes:
    """Return the version 2 index of a pack with these objects."""
    ids = sorted(rows)
    upto, at = [], 0
    for first in range(256):
        while at < len(ids) and ids[at][0] == first:
            at += 1
        upto.append(at)
    sums, near, far = list[int](), list[int](), list[int]()
    for id in ids:
        sum, offset = rows[id]
        sums.append(sum)
        near.append(offset if offset < FAR else 1 << 31 | len(far))
        if offset >= FAR:
            far.append(offset)
    count = len(ids)
    content = b"".join(
        [
            b"\377tOc",
            struct.pack(">L256L", 2, *upto),
            *ids,
            struct.pack(f">{2 * count}L{len(far)}Q", *sums, *near, *far),
            check,
        ]
    )
    return content + bytes(sha1(content, usedforsecurity=False).digest())
