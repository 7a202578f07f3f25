"""What calls of functions returned, brought home from the folders of their tasks: one trip for many."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from yurt.backends.job import frames
from yurt.hosts import Host
from yurt.hosts.base import refusal

TRIP, TASKS = 64 << 20, 2000
"""Bytes after which a trip takes no further results, and how many tasks it asks about."""

WORDS = 4000
"""Bytes of what a task wrote last, which are told where it has no result."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What one call came to, as its task wrote it."""

    ok: bool = False
    kind: str = ""
    """What went wrong: raised, python, load, pickle, large or damaged; empty if there is no result."""
    text: str = ""
    node: str = ""
    traceback: str = ""
    content: bytes = b""
    """The value, or the error that was raised, pickled; empty if it could not be."""
    last_words: str = ""
    """Where there is no result: what the task wrote last."""
    gone: bool = False
    """Whether not even the folder of the task is there."""


def bring(host: Host, folders: Sequence[str]) -> list[Result]:
    """The results of the first of these tasks, as many as one trip takes; at least one. UnreachableError."""
    lines = "".join(f"{each}\n" for each in folders[:TASKS]).encode()
    answer = host.run(frames.results(), str(TRIP), str(WORDS), stdin=lines, timeout=600)
    if answer.code:
        raise refusal(host.name, "the results could not be read", answer.errors)
    found = {int(name) - 1: pieces for name, pieces in frames.read(answer.out)}
    return [_read(found[at]) for at in sorted(found)]


def _read(pieces: dict[str, frames.Piece]) -> Result:
    if "result" not in pieces:
        words = pieces["err"].content if "err" in pieces else b""
        return Result(last_words=words.decode(errors="replace").strip(), gone="err" not in pieces)
    head, _, content = pieces["result"].content.partition(b"\n")
    try:
        result = msgspec.json.decode(head, type=Result)
    except msgspec.MsgspecError:
        return Result(kind="damaged")
    return msgspec.structs.replace(result, content=content)
