"""Reads answers made of records, as frames.sh writes them; and the script that answers so. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from yurt.backends import scripts
from yurt.backends.job import script
from yurt.model.files import Piece


def read(answer: bytes) -> Iterator[tuple[str, dict[str, Piece]]]:
    """Each record's name, and its pieces by name. What is not whole, and all that comes after it, is left out."""
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
    """The script that settles endings and sends what is kept of runs."""
    return script.gate() + scripts.text("frames.sh", "job") + scripts.text("keep.sh", "job")


@cache
def results() -> str:
    """The script that sends what calls of functions returned."""
    return scripts.text("frames.sh", "job") + scripts.text("results.sh", "job")
