"""Parses the records that frames.sh writes, and builds the scripts that write them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from yurt.backends import scripts
from yurt.backends.job import script, tar_members
from yurt.model import layout
from yurt.model.disk import number
from yurt.model.files import Limits, Piece

TAR = b"= tar\n"
"""The line before the tar file that keep.sh sends."""


def read(answer: bytes) -> Iterator[tuple[str, dict[str, Piece]]]:
    """Yield the name of each record and its pieces by name. Stop at the first incomplete record."""
    return ((name, pieces) for name, pieces, _at in _records(answer, {}))


def read_kept(answer: bytes, folders: Sequence[str], limits: Limits) -> dict[int, dict[str, Piece]]:
    """Return the pieces that keep.sh sent for each folder, by position; without folders of which a piece is missing."""
    whole: dict[str, list[str]] = {}
    records, end = {}, 0
    for name, pieces, at in _records(answer, whole):
        position = number(name)
        if position is None or not 0 < position <= len(folders):
            raise ValueError("it has records of other runs than those that were asked for")
        records[position - 1], end = pieces, at
    if not whole:
        return records
    files, complete = tar_members.read(answer[end + len(TAR) :]) if answer[end:].startswith(TAR) else ({}, False)
    most = {"out": limits.log, "err": limits.log, "metrics": limits.metrics}
    for name, names in whole.items():
        at = int(name) - 1
        for each in names:
            content = files.get(f"{folders[at]}/{FILES.get(each, each)}")
            if each not in FILES and (content is not None or complete):  # a text written once
                text, newline, _rest = (content or b"").partition(b"\n")
                if newline:
                    records[at][each] = Piece(len(text), text)
            elif content is not None:
                records[at][each] = Piece(len(content), content[-most[each] :])
            elif complete:  # it disappeared
                records[at][each] = Piece(0, b"")
            else:
                records.pop(at, None)
                break
    return records


FILES = {"out": layout.OUT_LOG, "err": layout.ERR_LOG, "metrics": layout.METRICS}


def _records(answer: bytes, whole: dict[str, list[str]]) -> Iterator[tuple[str, dict[str, Piece], int]]:
    """Yield the name of each record, its pieces, and where it ends. Adds the pieces in the tar file to `whole`."""
    at = 0
    while answer[at : at + 2] == b"= " and answer[at : at + len(TAR)] != TAR:
        name, at = _line(answer, at + 2)
        pieces: dict[str, Piece] = {}
        while True:
            line, at = _line(answer, at)
            if line == ".":
                break
            words = line.split(" ")
            if words[2:] == ["tar"]:
                whole.setdefault(name, []).append(words[0])
                continue
            size, count = (number(words[1]), number(words[2])) if len(words) == 3 else (None, None)
            if size is None or count is None or at + count > len(answer):
                return
            end = at + count
            pieces[words[0]] = Piece(size, answer[at:end])
            at = end
        yield name, pieces, at


def _line(answer: bytes, at: int) -> tuple[str, int]:
    end = answer.find(b"\n", at)
    return ("", len(answer)) if end < 0 else (answer[at:end].decode(errors="replace"), end + 1)


@cache
def keeper() -> str:
    """Return the script that writes verdicts and sends the files that yurt keeps of runs."""
    return (
        script.gate() + scripts.text("frames.sh", "job") + scripts.text("measure.sh") + scripts.text("keep.sh", "job")
    )


@cache
def results() -> str:
    """Return the script that sends the results of function calls."""
    return scripts.text("frames.sh", "job") + scripts.text("results.sh", "job")
