"""Writes a tree of files with owners and modes. Does not touch files that are correct already.

Running hosts use some of these trees, so an unchanged file must keep its inode.
"""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class File:
    """A file of a tree. Its parent folders are created with mode 0755, owned by root, unless the tree lists them."""

    content: str | bytes
    mode: int = 0o644
    owner: str | int = "root"


@dataclass(frozen=True)
class Folder:
    mode: int = 0o755
    owner: str | int = "root"


@dataclass(frozen=True)
class Link:
    target: str


Tree = dict[str, File | Folder | Link]


def write(root: Path, tree: Tree) -> None:
    """Write this tree below `root`; other files there stay. Can be interrupted anywhere and repeated."""
    root.mkdir(parents=True, exist_ok=True)
    root.chmod(0o755)
    for name, entry in tree.items():
        path = root / name
        _make_parents(root, path)
        if isinstance(entry, Folder):
            path.mkdir(exist_ok=True)
            _own(path, entry.mode, entry.owner)
        elif isinstance(entry, Link):
            if not path.is_symlink() or os.readlink(path) != entry.target:
                path.unlink(missing_ok=True)
                path.symlink_to(entry.target)
        else:
            _write_file(path, entry)


def _make_parents(root: Path, path: Path) -> None:
    for parent in reversed(path.relative_to(root).parents):
        folder = root / parent
        if not folder.exists():
            folder.mkdir()
            folder.chmod(0o755)


def _write_file(path: Path, entry: File) -> None:
    content = entry.content.encode() if isinstance(entry.content, str) else entry.content
    if path.exists() and path.read_bytes() == content:
        _own(path, entry.mode, entry.owner)
        return
    aside = path.with_name(f".{path.name}.new")
    aside.unlink(missing_ok=True)
    aside.touch(0o600, exist_ok=False)
    aside.write_bytes(content)
    _own(aside, entry.mode, entry.owner)
    aside.rename(path)


def _own(path: Path, mode: int, owner: str | int) -> None:
    if isinstance(owner, int):
        uid = gid = owner
    else:
        person = pwd.getpwnam(owner)
        uid, gid = person.pw_uid, person.pw_gid
    now = path.stat()
    if (now.st_uid, now.st_gid) != (uid, gid):
        os.chown(path, uid, gid)
    if now.st_mode & 0o7777 != mode:
        path.chmod(mode)
