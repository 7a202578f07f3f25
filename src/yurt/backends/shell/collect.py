"""Fetches small files of many runs in one request: files kept of finished runs, and results of function calls."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from yurt.backends.job import frames
from yurt.backends.shell import ownership
from yurt.model.calls import CallResult
from yurt.model.files import Ended, Limits, Piece
from yurt.model.site_words import MALFORMED, whole
from yurt.transport.base import Host, refusal

BYTES, TASKS = 64 << 20, 2000
"""Limits of one request for results: it stops after so many bytes, and asks for at most so many tasks."""

ERR_BYTES = 4000
"""How much of the end of err.log is fetched for a task without a result."""


def collect(
    host: Host, ended: Sequence[Ended], limits: Limits, *, content: bool, measure: bool, timeout: float
) -> dict[int, dict[str, Piece]]:
    lines = [f"{each.folder}\n{each.verdict}\n" for each in ended]
    flags = ["yes" if content else "", "yes" if measure else ""]
    bounds = (limits.trip, limits.seconds, limits.log, limits.metrics, limits.metrics_head, limits.files)
    nonce = f"yurt.{os.urandom(4).hex()}"
    arguments = [nonce, *flags, *(str(each) for each in bounds)]
    answer = ownership.run(
        host,
        [each.folder for each in ended],
        frames.keeper(),
        *arguments,
        stdin="".join(lines).encode(),
        timeout=timeout,
    )
    if answer.code:
        raise refusal(host.name, "cannot read the run folders", answer.errors)
    with host.reading():
        return frames.read_kept(answer.out, [each.folder for each in ended], limits)


def call_results(host: Host, folders: Sequence[str]) -> list[CallResult]:
    lines = "".join(f"{each}\n" for each in folders[:TASKS]).encode()
    answer = ownership.run(host, folders, frames.results(), str(BYTES), str(ERR_BYTES), stdin=lines, timeout=600)
    if answer.code:
        raise refusal(host.name, "cannot read the results", answer.errors)
    with host.reading():
        found = [(whole(name), pieces) for name, pieces in frames.read(answer.out)]
        if [number for number, _pieces in found] != [*range(1, len(found) + 1)] or len(found) > len(folders):
            raise ValueError("it has other results than those that were asked for")
    return [read_result(pieces) for _number, pieces in found]


def read_result(pieces: dict[str, Piece]) -> CallResult:
    """Return the result of a call from what was sent of its task."""
    if "unsafe" in pieces:
        return CallResult(kind="unsafe")
    if "result" not in pieces:
        log = pieces["err"].content if "err" in pieces else b""
        return CallResult(last_words=log.decode(errors="replace").strip(), gone="err" not in pieces)
    head, _, content = pieces["result"].content.partition(b"\n")
    try:
        result = msgspec.json.decode(head, type=CallResult)
    except MALFORMED:
        return CallResult(kind="damaged")
    return msgspec.structs.replace(result, content=content)
