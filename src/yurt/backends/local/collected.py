"""What yurt keeps of finished runs on this machine, read without starting a program. Does what keep.sh does."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Sequence

from yurt.backends.local import gate, own
from yurt.model import layout
from yurt.model.files import Ended, Limits, Piece

USAGE_BYTES = 60_000
"""The same as in keep.sh."""


def is_usual(folder: str) -> bool:
    """Return whether `collected` can read a run folder; whatever is unusual is left to keep.sh."""
    return own.surely_own(layout.chain(folder)) and not os.path.exists(f"{folder}/{layout.NO_LINKS}")


def collected(ended: Sequence[Ended], limits: Limits, *, content: bool) -> dict[int, dict[str, Piece]]:
    """Write the verdicts of runs, unless they have one, and return the files to keep, up to the limits."""
    me, until, left, full = f"yurt.{os.urandom(4).hex()}", time.monotonic() + limits.seconds, limits.trip, False
    found: dict[int, dict[str, Piece]] = {}
    for at, each in enumerate(ended):
        if left <= 0 or time.monotonic() > until:
            break
        pieces = found[at] = {}
        if not os.path.isdir(each.folder):
            continue
        pieces["there"] = Piece(0, b"")
        status = f"{each.folder}/{layout.STATUS}"
        verdict = gate.read_written(status)
        if not verdict and each.verdict and not full:
            verdict = gate.write_once(status, each.verdict, me, patience=1)
            full = not verdict
        for name, text in ((layout.STATUS, verdict), (layout.EXIT, gate.read_written(f"{each.folder}/{layout.EXIT}"))):
            if text:
                pieces[name] = Piece(len(os.fsencode(text)), os.fsencode(text))
        if layout.EXIT not in pieces:
            pieces["usage"] = _end(f"{each.folder}/{layout.USAGE}", USAGE_BYTES)  # of a run that was killed
        if content:
            pieces["out"] = _end(f"{each.folder}/{layout.OUT_LOG}", limits.log)
            pieces["err"] = _end(f"{each.folder}/{layout.ERR_LOG}", limits.log)
            pieces["metrics"] = _metrics(f"{each.folder}/{layout.METRICS}", limits)
        left -= sum(len(piece.content) for piece in pieces.values())
    return found


def _end(path: str, most: int) -> Piece:
    """Return the last bytes of a file."""
    size = _size(path)
    return Piece(size, _read(path, max(0, size - most), min(size, most)))


def _metrics(path: str, limits: Limits) -> Piece:
    """Return the complete file, or its beginning and end."""
    size = _size(path)
    if size <= limits.metrics:
        return Piece(size, _read(path, 0, size))
    end = limits.metrics - limits.metrics_head
    return Piece(size, _read(path, 0, limits.metrics_head) + b"\n" + _read(path, size - end, end))


def _size(path: str) -> int:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _read(path: str, offset: int, count: int) -> bytes:
    if not count:
        return b""
    with open(path, "rb") as file:
        file.seek(offset)
        return file.read(count)
