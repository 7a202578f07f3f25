"""Sends requests to the holder of a dev node: its job, which listens on a socket on the node's own disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from yurt.contexts import connect
from yurt.errors import NotFoundError, RefusedError, UnreachableError
from yurt.lifecycle.plan.holders import START
from yurt.model import layout
from yurt.model.site_words import MALFORMED, Reading
from yurt.store import Entry

ASK = f"""\
cd "$1" && eval "$(sed -n '/^imports=/{{p;q;}}' {layout.JOB})" || exit
export YURT_RUN_DIR="$1"
exec python3 -I -S -B -c '{START}' "$imports" ask "$2"
"""
"""Asks with the version of the program that the run's job uses; job.sh names its folder."""

SILENCE = 60.0
"""Seconds without a line after which a request has failed. The holder sends one every 10 s while it works."""

Progress = Callable[[dict[str, Any]], None]

_Shape = TypeVar("_Shape")


def ask(entry: Entry, request: dict[str, Any], on_progress: Progress = lambda _progress: None) -> dict[str, Any]:
    """Send a request to the holder of a running dev node; return its answer.

    `on_progress` receives what the holder reports until then. NotFoundError: what the request names is not there.
    RefusedError: the holder rejects the request, or the dev node is not running. UnreachableError: there is no answer;
    the request may have taken effect. Safe to retry.
    """

    def on_line(line: bytes) -> None:
        found = _read(line)
        if "progress" in found:
            on_progress(found["progress"])

    (placement,) = entry.placements
    # json writes and reads the bytes of a name that is not UTF-8, as \udcff; msgspec does not.
    words = ["sh", "-c", ASK, "sh", placement.folder, json.dumps(request)]
    backend = connect.named_backend(entry.run.context)
    asked = backend.exec.ask(placement, words, on_line=on_line, silence=SILENCE)
    answer = next((found for line in reversed(asked.out.splitlines()) if (found := _read(line))), {})
    if isinstance(answer.get("error"), str) and answer.get("missing"):
        raise NotFoundError(f"{entry.run.context}: {answer['error']}", code="not-found")
    if isinstance(answer.get("error"), str):
        raise RefusedError(f"{entry.run.context}: {answer['error']}", code="site-refused")
    if not answer.get("ok"):
        errors = asked.err.decode(errors="replace").strip().splitlines()
        reason = errors[-1] if errors else f"exit code {asked.code}"
        raise UnreachableError(
            f"{entry.run.context}: the dev node does not answer: {reason}",
            code="connection-lost",
            hint=f"see its log with `yurt logs {entry.run.id}`",
        )
    return answer


def part(entry: Entry, answer: dict[str, Any], name: str, shape: type[_Shape]) -> _Shape | None:
    """Return a part of an answer; None if it has none. RefusedError: it is not what it should be."""
    with Reading(entry.run.context):
        return msgspec.convert(answer.get(name), shape | None)


def _read(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line, parse_constant=float)
        json.dumps(found, ensure_ascii=False).encode(errors="surrogateescape")  # only bytes of names
    except MALFORMED:
        return {}
    return found if isinstance(found, dict) else {}
