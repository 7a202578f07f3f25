"""Writes a tree of files with owners and modes. Does not touch files that are correct already.

Running hosts use some of these trees, so an unchanged file must keep its inode.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
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
People = Mapping[str, tuple[int, int]]
"""The uid and gid of each account."""


def people(root: str = "/") -> People:
    """Return the accounts in /etc/passwd of a root file system."""
    rows = [line.split(":") for line in Path(root, "etc/passwd").read_text().splitlines()]
    return {row[0]: (int(row[2]), int(row[3])) for row in rows if len(row) == 7}


def write(root: Path, tree: Tree, owners: People | None = None) -> None:
    """Write this tree below `root`; other files there stay. Can be interrupted anywhere and repeated.

    `owners` are the accounts of the hosts that use the tree; without them, those of this machine.
    """
    owners = people() if owners is None else owners
    root.mkdir(parents=True, exist_ok=True)
    root.chmod(0o755)
    for name, entry in tree.items():
        path = root / name
        _make_parents(root, path)
        if isinstance(entry, Folder):
            path.mkdir(exist_ok=True)
            _own(path, entry.mode, _ids(entry.owner, owners))
        elif isinstance(entry, Link):
            if not path.is_symlink() or os.readlink(path) != entry.target:
                path.unlink(missing_ok=True)
                path.symlink_to(entry.target)
        else:
            _write_file(path, entry, _ids(entry.owner, owners))


def _make_parents(root: Path, path: Path) -> None:
    for parent in reversed(path.relative_to(root).parents):
        folder = root / parent
        if not folder.exists():
            folder.mkdir()
            folder.chmod(0o755)


def _ids(owner: str | int, owners: People) -> tuple[int, int]:
    return (owner, owner) if isinstance(owner, int) else owners[owner]


def _write_file(path: Path, entry: File, ids: tuple[int, int]) -> None:
    content = entry.content.encode() if isinstance(entry.content, str) else entry.content
    if path.exists() and path.read_bytes() == content:
        _own(path, entry.mode, ids)
        return
    aside = path.with_name(f".{path.name}.new")
    aside.unlink(missing_ok=True)
    aside.touch(0o600, exist_ok=False)
    aside.write_bytes(content)
    _own(aside, entry.mode, ids)
    aside.rename(path)


def _own(path: Path, mode: int, ids: tuple[int, int]) -> None:
    now = path.stat()
    if (now.st_uid, now.st_gid) != ids:
        os.chown(path, *ids)
    if now.st_mode & 0o7777 != mode:
        path.chmod(mode)
