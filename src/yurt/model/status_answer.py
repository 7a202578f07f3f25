"""The parts of the answer to a status query that say whether anything has changed. Pure."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

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


class RunFiles(msgspec.Struct, frozen=True):
    """What a status query has read in the folder of a running run."""

    metrics: bytes
    """Lines of its metrics, with the last value of each."""
    usage: bytes
    """The samples of what it uses."""


def split_files(answer: bytes, *, asked: bool) -> tuple[RunFiles | None, bytes]:
    """Return what was read in a run folder, if the query asked for that, and the rest of the answer."""
    if not asked:
        return None, answer
    at = 0 if answer.startswith(QUEUE) else answer.find(b"\n" + QUEUE) + 1
    lines = answer[:at].split(b"\n")
    metrics, usage = (b"".join(line[1:] + b"\n" for line in lines if line[:1] == mark) for mark in (b"|", b"~"))
    return RunFiles(metrics, usage), answer[at:]


EXPIRES = "<"
"""The first character of a mark that expires; no row of a queue begins with it."""


def expiring(mark: str, at: float) -> str:
    """Return a mark that is valid until a time."""
    return f"{EXPIRES}{at:.3f}|{mark}"


def valid_mark(mark: str, now: float) -> str:
    """Return a mark as it was made; empty if it has expired."""
    if not mark.startswith(EXPIRES):
        return mark
    at, _, made = mark[1:].partition("|")
    return made if now < float(at) else ""
