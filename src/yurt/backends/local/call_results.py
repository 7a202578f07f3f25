"""Results of function calls on this machine, read without a shell, as results.sh does: there may be thousands."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from yurt.backends.local import own
from yurt.backends.shell import collect
from yurt.model import layout
from yurt.model.calls import CallResult
from yurt.model.files import Piece


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
