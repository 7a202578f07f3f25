"""Reads the new bytes of files of runs that grow: one request for all runs of a context."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from yurt.backends import scripts
from yurt.backends.shell import ownership
from yurt.errors import UnreachableError
from yurt.model import layout
from yurt.model.growth import OVERLAP, Growing, Kind, Reader
from yurt.model.log_chunks import check_header
from yurt.model.site_words import whole
from yurt.transport.base import Host, not_requested, refusal
from yurt.transport.ssh_errors import RETRY

SILENCE = 120.0
"""Seconds without data after which a connection counts as lost; a search in many folders may take long."""

PLACE = "place"
"""The first part of the paths of files that are not in the run folder."""


class Header(NamedTuple):
    """What the site says before the bytes of a file."""

    start: int
    seen: str
    path: str


def read(host: Host, growing: Sequence[Growing], kinds: Sequence[Kind], reader: Reader) -> None:
    """Pass the new bytes of all files to `reader`; see `Files.grow`."""
    nonce = f"yurt.{os.urandom(12).hex()}"
    arguments = [nonce, " ".join(kinds), str(OVERLAP), "\n".join(_roots(growing)), "\n".join(_table(growing))]
    places = {path: (at, name) for at, each in enumerate(growing) for name, path in _folders(each)}
    folders = [each.folder for each in growing]
    with ownership.stream(host, folders, scripts.text("growth.sh"), *arguments, silence=SILENCE) as stream:
        for header, parts in _files(host, iter(stream), f"\n{nonce}\n".encode()):
            with host.reading():
                at, path = _owner(header.path, places)
            reader.begin(at, path, header.seen, header.start)
            for part in parts:
                reader.more(part)
            reader.end()
        if stream.code:
            raise refusal(host.name, "cannot read the run folders", stream.err.decode(errors="replace").strip())


def _folders(each: Growing) -> Iterator[tuple[str, str]]:
    yield "", each.folder
    if each.place:
        yield f"{PLACE}/", each.place


def _full(each: Growing, path: str) -> str:
    below = path.removeprefix(f"{PLACE}/")
    return f"{each.place}/{below}" if each.place and below != path else f"{each.folder}/{path}"


def _roots(growing: Sequence[Growing]) -> Iterator[str]:
    for each in growing:
        if each.deep:
            yield from (f"0 {path}" for _name, path in _folders(each))
            continue
        yield f"2 {each.folder}/{layout.TASKS}" if each.sweep else f"1 {each.folder}"
        yield from (f"1 {folder}" for folder in {_full(each, known.path).rpartition("/")[0] for known in each.known})


def _table(growing: Sequence[Growing]) -> Iterator[str]:
    for each in growing:
        yield f"{'S' if each.sweep else 'R'} {each.folder}"
        if each.place:
            yield f"P {each.since:.0f} {each.until or 1e12:.0f} {each.place}"
        yield from (f"T {known.size} {known.seen or '-'} {_full(each, known.path)}" for known in each.known)


def _owner(path: str, places: dict[str, tuple[int, str]]) -> tuple[int, str]:
    """Return the number of the run that a file belongs to, and its path there."""
    folder = path
    while folder := folder.rpartition("/")[0]:
        if folder in places:
            at, name = places[folder]
            return at, name + path[len(folder) + 1 :]
    raise not_requested("the site", path)


def _files(host: Host, chunks: Iterator[bytes], marker: bytes) -> Iterator[tuple[Header, Iterator[bytes]]]:
    """Yield each file and its bytes, which must be consumed before the next one."""
    held = b""

    def parts() -> Iterator[bytes]:
        nonlocal held
        while True:
            at = held.find(marker)
            if at >= 0:
                part, held = held[:at], held[at + len(marker) :]
                yield part
                return
            if sure := max(0, len(held) - len(marker)):
                part, held = held[:sure], held[sure:]
                yield part
            chunk = next(chunks, b"")
            if not chunk:
                raise UnreachableError("the output ended in the middle of a file", code="connection-lost", hint=RETRY)
            held += chunk

    for chunk in chunks:
        held += chunk
        while b"\n" in held:
            line, _, held = held.partition(b"\n")
            with host.reading():
                start, seen, path = os.fsdecode(line).split(" ", 2)
                header = Header(whole(start), seen, path)
            yield header, parts()
        with host.reading():
            check_header(held)
