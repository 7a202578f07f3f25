"""Writes tar archives as chunks: the same files give the same bytes on every machine, and the size is known before."""

from __future__ import annotations

import os
import stat
import tarfile
from collections.abc import Iterator, Sequence

import msgspec

from yurt.errors import RefusedError

CHUNK = 1 << 20
END = b"\0" * 1024


class Entry(msgspec.Struct, frozen=True):
    """A file, link or folder of this machine, and its name in the archive."""

    path: str
    name: str
    mode: int
    size: int
    """Bytes of a file; 0 for anything else."""
    modified_ns: int
    link: str = ""
    """Where a link points; empty for anything else."""

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)


def walk(root: str) -> tuple[list[Entry], list[str]]:
    """Return the content of a folder, sorted, and the special files in it. OSError if a folder cannot be read."""
    found: list[Entry] = []
    special: list[str] = []

    def fail(error: OSError) -> None:
        raise error

    for folder, folders, files in os.walk(root, onerror=fail):
        folders.sort()
        for name in [*folders, *files]:
            path = os.path.join(folder, name)  # noqa: PTH118
            each = entry(path, os.path.relpath(path, root))
            if each is None:
                special.append(os.path.relpath(path, root))
            else:
                found.append(each)
    return sorted(found, key=lambda each: os.fsencode(each.name)), special


def entry(path: str, name: str) -> Entry | None:
    """Return a file, link or folder as an entry of this name; None for a special file."""
    facts = os.lstat(path)
    if stat.S_ISLNK(facts.st_mode):
        return Entry(path, name, facts.st_mode, 0, facts.st_mtime_ns, os.readlink(path))
    if stat.S_ISREG(facts.st_mode) or stat.S_ISDIR(facts.st_mode):
        size = facts.st_size if stat.S_ISREG(facts.st_mode) else 0
        return Entry(path, name, facts.st_mode, size, facts.st_mtime_ns)
    return None


def size(entries: Sequence[Entry]) -> int:
    """Return the bytes of the archive."""
    return sum(len(_header(each)) + _padded(each.size) for each in entries) + len(END)


def chunks(entries: Sequence[Entry], start: int = 0) -> Iterator[bytes]:
    """Yield the archive from byte `start` on. Files before it are not read. RefusedError if a file changes."""
    at = 0
    for each in entries:
        header = _header(each)
        whole = len(header) + _padded(each.size)
        if at + whole > start:
            skip = max(0, start - at)
            if skip < len(header):
                yield header[skip:]
            if each.size:
                yield from _content(each, max(0, skip - len(header)))
        at += whole
    yield END[max(0, start - at) :]


def _header(each: Entry) -> bytes:
    info = tarfile.TarInfo(each.name)
    info.mode = stat.S_IMODE(each.mode) & 0o777
    info.mtime = each.modified_ns // 10**9
    if each.link:
        info.type, info.linkname = tarfile.SYMTYPE, each.link
    elif each.is_folder:
        info.type = tarfile.DIRTYPE
    else:
        info.size = each.size
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def _padded(count: int) -> int:
    return -(-count // 512) * 512


def _content(each: Entry, skip: int) -> Iterator[bytes]:
    with open(each.path, "rb") as file:  # noqa: PTH123
        left = each.size - skip
        if left > 0:
            file.seek(skip)
        while left > 0:
            part = file.read(min(CHUNK, left))
            if not part:
                raise _changed(each)
            left -= len(part)
            yield part
        facts = os.fstat(file.fileno())
        if (facts.st_size, facts.st_mtime_ns) != (each.size, each.modified_ns):
            raise _changed(each)
    rest = _padded(each.size) - max(each.size, skip)
    if rest > 0:
        yield b"\0" * rest


def _changed(each: Entry) -> RefusedError:
    return RefusedError(
        f"'{os.fsencode(each.path).decode(errors='replace')}' changed while it was read",
        code="cannot-write",
        hint="run the command again",
    )
