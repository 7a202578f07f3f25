"""Parses the records that frames.sh writes, and builds the scripts that write them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from yurt.backends import scripts
from yurt.backends.job import script
from yurt.model.files import Piece


def read(answer: bytes) -> Iterator[tuple[str, dict[str, Piece]]]:
    """Yield the name of each record and its pieces by name. Stop at the first incomplete record."""
    at = 0
    while answer[at : at + 2] == b"= ":
        name, at = _line(answer, at + 2)
        pieces: dict[str, Piece] = {}
        while True:
            line, at = _line(answer, at)
            if line == ".":
                break
            words = line.split(" ")
            if len(words) != 3 or not words[1].isdigit() or not words[2].isdigit():
                return
            end = at + int(words[2])
            if end > len(answer):
                return
            pieces[words[0]] = Piece(int(words[1]), answer[at:end])
            at = end
        yield name, pieces


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
