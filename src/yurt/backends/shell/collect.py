"""Brings small files of many runs in one trip: what is kept of ended ones, and what calls of functions returned."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from yurt.backends.job import frames
from yurt.hosts import Host
from yurt.hosts.base import refusal
from yurt.model.calls import CallResult
from yurt.model.files import Ended, Limits, Piece

TRIP, TASKS = 64 << 20, 2000
"""Bytes after which a trip takes no further results, and how many tasks it asks about."""

WORDS = 4000
"""Bytes of what a task wrote last, which are told where it has no result."""


def collect(
    host: Host, ended: Sequence[Ended], limits: Limits, *, content: bool, measure: bool, timeout: float
) -> dict[int, dict[str, Piece]]:
    lines = [f"{each.folder}\n{each.verdict}\n" for each in ended]
    wishes = ["yes" if content else "", "yes" if measure else ""]
    bounds = (limits.trip, limits.seconds, limits.log, limits.metrics, limits.metrics_head)
    nonce = f"yurt.{os.urandom(4).hex()}"
    words = [nonce, *wishes, *(str(each) for each in bounds)]
    answer = host.run(frames.keeper(), *words, stdin="".join(lines).encode(), timeout=timeout)
    if answer.code:
        raise refusal(host.name, "run folders could not be read", answer.errors)
    return {int(name) - 1: pieces for name, pieces in frames.read(answer.out)}


def call_results(host: Host, folders: Sequence[str]) -> list[CallResult]:
    lines = "".join(f"{each}\n" for each in folders[:TASKS]).encode()
    answer = host.run(frames.results(), str(TRIP), str(WORDS), stdin=lines, timeout=600)
    if answer.code:
        raise refusal(host.name, "the results could not be read", answer.errors)
    found = {int(name) - 1: pieces for name, pieces in frames.read(answer.out)}
    return [_read(found[at]) for at in sorted(found)]


def _read(pieces: dict[str, Piece]) -> CallResult:
    if "result" not in pieces:
        words = pieces["err"].content if "err" in pieces else b""
        return CallResult(last_words=words.decode(errors="replace").strip(), gone="err" not in pieces)
    head, _, content = pieces["result"].content.partition(b"\n")
    try:
        result = msgspec.json.decode(head, type=CallResult)
    except msgspec.MsgspecError:
        return CallResult(kind="damaged")
    return msgspec.structs.replace(result, content=content)
