"""The parts of the answer to a status query that say whether anything has changed. Pure."""

from __future__ import annotations

import time
from collections.abc import Sequence

from yurt.model.run import RunRef

QUEUE, FOLDERS = b"= queue\n", b"= folders\n"
"""The first lines of two sections of the answer."""


def days_since(refs: Sequence[RunRef]) -> int:
    """Return for how many days accounting records of these runs are queried."""
    now = time.time()
    oldest = min((ref.created for ref in refs), default=now)
    return max(1, int((now - oldest) / 86400) + 2)


def has_folders(answer: bytes) -> bool:
    """Return whether the folder of some run was read: it is not in the queue, or has left an exit code."""
    return FOLDERS in answer and not answer.endswith(FOLDERS)


def split_metrics(answer: bytes, *, asked: bool) -> tuple[bytes | None, bytes]:
    """Return the lines of metrics before the queue, if the query asked for some, and the rest of the answer."""
    if not asked:
        return None, answer
    lines, rest = [], answer
    while rest and not rest.startswith(QUEUE):
        line, _newline, rest = rest.partition(b"\n")
        if line.startswith(b"|"):
            lines.append(line[1:])
    return b"\n".join(lines), rest
