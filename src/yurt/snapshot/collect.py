"""Which files belong to a project: tracked, changed and new ones, of nested repositories too, ignored ones not."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from yurt.snapshot import git

IGNORE_FILE = ".yurtignore"


def collect(root: Path, own: Path, *, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> list[bytes]:
    """Paths below `root`, as bytes, sorted. `own` is a git folder of yurt's with an empty index.

    `include` brings ignored files back by glob; `exclude` and .yurtignore leave files out, tracked ones too.
    """
    files = _in_folder(root, own)
    for pattern in include:
        files |= _names(git.call(["ls-files", "-z", "-o", "--", f":(glob){pattern}"], folder=root, own=own))
    files = {name for name in files if not name.endswith(b"/")}
    files -= _left_out(root, own, exclude)
    return sorted(name for name in files if os.path.lexists(os.path.join(os.fsencode(root), name)))


def _in_folder(folder: Path, own: Path) -> set[bytes]:
    """Files of one folder and of the repositories nested in it, relative to the folder."""
    listing = ["ls-files", "-z", "--others", "--exclude-standard"]
    if git.in_repository(folder):
        names = _names(git.call([*listing, "--cached", "--", "."], folder=folder))
    else:
        names = _names(git.call(listing, folder=folder, own=own))
    found: set[bytes] = set()
    for name in names:
        path = os.path.join(os.fsencode(folder), name)
        if os.path.isdir(path) and not os.path.islink(path):  # a submodule, or a repository nobody tracks
            inner = Path(os.fsdecode(path))
            if inner.resolve() != folder.resolve():
                found |= {os.path.join(name.rstrip(b"/"), each) for each in _in_folder(inner, own)}
        else:
            found.add(name)
    return found


def _left_out(root: Path, own: Path, exclude: Sequence[str]) -> set[bytes]:
    """What .yurtignore files and patterns name. Asked of yurt's own git folder: to it nothing is tracked."""
    patterns = [f"--exclude={pattern}" for pattern in exclude]
    listing = ["ls-files", "-z", "--others", "--ignored", f"--exclude-per-directory={IGNORE_FILE}", *patterns]
    return _names(git.call(listing, folder=root, own=own))


def _names(listing: bytes) -> set[bytes]:
    return {name for name in listing.split(b"\0") if name}
