"""What calls of functions returned, brought home from the folders of their tasks: one trip for many."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from yurt.backends.job import frames
from yurt.hosts import Host
from yurt.hosts.base import refusal
from yurt.model.calls import CallResult

TRIP, TASKS = 64 << 20, 2000
"""Bytes after which a trip takes no further results, and how many tasks it asks about."""

WORDS = 4000
"""Bytes of what a task wrote last, which are told where it has no result."""


def bring(host: Host, folders: Sequence[str]) -> list[CallResult]:
    """The results of the first of these tasks, as many as one trip takes; at least one. UnreachableError."""
    lines = "".join(f"{each}\n" for each in folders[:TASKS]).encode()
    answer = host.run(frames.results(), str(TRIP), str(WORDS), stdin=lines, timeout=600)
    if answer.code:
        raise refusal(host.name, "the results could not be read", answer.errors)
    found = {int(name) - 1: pieces for name, pieces in frames.read(answer.out)}
    return [_read(found[at]) for at in sorted(found)]


def _read(pieces: dict[str, frames.Piece]) -> CallResult:
    if "result" not in pieces:
        words = pieces["err"].content if "err" in pieces else b""
        return CallResult(last_words=words.decode(errors="replace").strip(), gone="err" not in pieces)
    head, _, content = pieces["result"].content.partition(b"\n")
    try:
        result = msgspec.json.decode(head, type=CallResult)
    except msgspec.MsgspecError:
        return CallResult(kind="damaged")
    return msgspec.structs.replace(result, content=content)
