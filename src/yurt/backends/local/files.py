"""The files of runs on this machine: ordinary ones are read without starting a program, others by the scripts."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Sequence

from yurt.backends.local import gate, own
from yurt.backends.shell import collect
from yurt.backends.shell.files import ShellFiles
from yurt.model import layout
from yurt.model.calls import CallResult
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


def are_usual(folders: Sequence[str]) -> bool:
    """Return whether nobody else can write to these folders; if that is not certain, own.sh decides."""
    bases = {layout.chain(folder)[0] for folder in folders}
    every = dict.fromkeys(path for folder in folders for path in layout.chain(folder))
    return len(bases) == 1 and own.surely_own(list(every))


def call_results(folders: Sequence[str]) -> list[CallResult]:
    """Return the results of tasks, up to the limits of one trip."""
    found, left = list[CallResult](), collect.BYTES
    for folder in folders[: collect.TASKS]:
        if left <= 0:
            break
        pieces = _pieces(folder)
        left -= sum(len(each.content) for each in pieces.values())
        found.append(collect.read_result(pieces))
    return found


def _pieces(folder: str) -> dict[str, Piece]:
    """Return what results.sh sends of a task. A result is opened first: what is checked is what is read."""
    try:
        file = os.open(f"{folder}/{layout.RESULT}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return _last_words(folder)
    except OSError:
        return {"unsafe": Piece(0, b"")}
    about = os.fstat(file)
    if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & own.WRITABLE:
        os.close(file)
        return {"unsafe": Piece(0, b"")}
    with os.fdopen(file, "rb") as stream:
        return {"result": Piece(about.st_size, stream.read())}


def _last_words(folder: str) -> dict[str, Piece]:
    if not os.path.isdir(folder):
        return {}
    try:
        with open(f"{folder}/{layout.ERR_LOG}", "rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - collect.ERR_BYTES))
            return {"err": Piece(size, stream.read())}
    except OSError:
        return {"err": Piece(0, b"")}


class LocalFiles(ShellFiles):
    """The files of the runs on this machine."""

    def collect(
        self, ended: Sequence[Ended], limits: Limits, *, content: bool, measure: bool = False, timeout: float
    ) -> dict[int, dict[str, Piece]]:
        """See `Files.collect`. What fails is left to keep.sh: it may be repeated."""
        if not measure and all(is_usual(each.folder) for each in ended):
            try:
                return collected(ended, limits, content=content)
            except OSError:
                pass
        return super().collect(ended, limits, content=content, measure=measure, timeout=timeout)

    def call_results(self, folders: Sequence[str]) -> list[CallResult]:
        if are_usual(folders):
            return call_results(folders)
        return super().call_results(folders)  # which says what is wrong, if anything is
