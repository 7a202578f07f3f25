"""The files of runs on this machine. Results of function calls are read without a shell: there may be thousands."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from yurt.backends.shell import collect
from yurt.backends.shell.files import ShellFiles
from yurt.model import layout
from yurt.model.calls import CallResult
from yurt.model.files import Piece

OTHERS = stat.S_IWGRP | stat.S_IWOTH


class LocalFiles(ShellFiles):
    """The files of the runs on this machine."""

    def call_results(self, folders: Sequence[str]) -> list[CallResult]:
        if not _plainly_own(folders):
            return super().call_results(folders)  # which says what is wrong, if anything is
        found, left = [], collect.BYTES
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
    if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & OTHERS:
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


def _plainly_own(folders: Sequence[str]) -> bool:
    """Whether nobody else can write to these folders or to any above them, without a second thought; see own.sh."""
    me = os.geteuid()
    checked: set[str] = set()
    for folder in folders:
        for path in (folder, *(each for each in layout.chain(folder)[:-1] if each not in checked)):
            checked.add(path)
            try:
                about = os.lstat(path)
            except FileNotFoundError:
                continue
            if not stat.S_ISDIR(about.st_mode) or about.st_uid != me or about.st_mode & OTHERS:
                return False
    above = {each for folder in folders[:1] for each in Path(layout.chain(folder)[0]).parents}
    return len({layout.chain(folder)[0] for folder in folders}) == 1 and all(
        _cannot_replace(each, me) for each in above
    )


def _cannot_replace(folder: Path, me: int) -> bool:
    """Whether only this user and root can replace what is in a folder."""
    about = folder.lstat()
    sticky = not about.st_mode & OTHERS or bool(about.st_mode & stat.S_ISVTX)
    return stat.S_ISDIR(about.st_mode) and about.st_uid in (0, me) and sticky
