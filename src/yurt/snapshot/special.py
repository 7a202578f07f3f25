"""Finds pipes, sockets and devices of a project: a snapshot cannot contain them, and git does not list them."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from yurt import private
from yurt.errors import RefusedError
from yurt.snapshot import git


def find(root: Path, noted: Path, folders: Iterable[bytes]) -> list[bytes]:
    """Return those in these folders, and those that the file `noted` names, and note them there for the next time."""
    start = os.path.join(os.fsencode(root), b"")
    try:
        known = {name for name in noted.read_bytes().split(b"\0") if name}
    except OSError:
        known = set()
    found = {name for name in known if _is_special(start + name)}
    for folder in folders:
        found.update(os.path.join(folder, name) for name in _search(start + folder))
    if found != known:
        aside = noted.with_name(f"{noted.name}.new")
        private.write(aside, b"\0".join(sorted(found)))
        aside.rename(noted)
    return sorted(found)


def ignored(root: Path, own: Path, names: Collection[bytes]) -> set[bytes]:
    """Return which of the names .gitignore files match. `own` is an empty git folder of yurt."""
    folder = None if git.in_repository(root) else own
    command = ["check-ignore", "-z", "--stdin", "--no-index"]
    try:
        return set(git.call(command, folder=root, own=folder, stdin=b"\0".join(names)).split(b"\0"))
    except RefusedError:  # none is, or git cannot tell
        return set()


def _search(folder: bytes) -> Iterator[bytes]:
    try:
        with os.scandir(folder) as entries:
            for each in entries:
                if not (each.is_file(follow_symlinks=False) or each.is_dir(follow_symlinks=False) or each.is_symlink()):
                    yield each.name
    except OSError:
        return


def _is_special(path: bytes) -> bool:
    try:
        kind = stat.S_IFMT(os.lstat(path).st_mode)
    except OSError:
        return False
    return kind not in (stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR)
