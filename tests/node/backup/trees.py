"""Random workspaces: edits of all kinds, and a fingerprint that tells whether two trees are the same."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from pathlib import Path
from random import Random
from typing import Any, BinaryIO

NAMES = [
    b"a",
    b"b",
    b"-rf",
    b"new\nline",
    b"\xff\xfe",
    "ü".encode(),
    b" x ",
    b"$(id)",
    b"[1]*?",
    b"n" * 255,
    b"back\\n",
]
Fingerprint = dict[bytes, tuple[Any, ...]]


def fingerprint(folder: Path) -> Fingerprint:
    """Return all that a restore has to bring back: types, modes, times, contents, targets, hard links, attributes."""
    found: Fingerprint = {}
    first: dict[int, bytes] = {}
    top = os.fsencode(folder)
    for place, folders, names in os.walk(top):
        for name in sorted([*folders, *names]) + ([b"."] if place == top else []):
            path = os.path.join(place, name)
            about = os.lstat(path)
            below = os.path.relpath(path, top)
            kind = stat.S_IFMT(about.st_mode)
            content: bytes | str = b""
            if kind == stat.S_IFREG:
                content = hashlib.sha256(Path(os.fsdecode(path)).read_bytes()).hexdigest()
            elif kind == stat.S_IFLNK:
                content = os.readlink(path)
            linked = b""
            if about.st_nlink > 1 and kind != stat.S_IFDIR:
                linked = first.setdefault(about.st_ino, below)
            extra = tuple(
                (name, os.getxattr(path, name, follow_symlinks=False))
                for name in sorted(os.listxattr(path, follow_symlinks=False))
                if name.startswith("user.")
            )
            mode = about.st_mode if kind != stat.S_IFLNK else kind
            found[below] = (mode, about.st_mtime_ns, content, linked, extra)
    groups: dict[bytes, bytes] = {}
    for path in sorted(found):
        if leader := found[path][3]:
            found[path] = (*found[path][:3], groups.setdefault(leader, path), found[path][4])
    return found


def _create(path: bytes) -> BinaryIO:
    """Open a file for writing: a new one or one that exists, never what a link names, and never a FIFO."""
    if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
        raise FileExistsError
    return open(path, "wb")


class Editor:
    """Edits a workspace at random, as seeded."""

    def __init__(self, folder: Path, dice: Random) -> None:
        self.folder = os.fsencode(folder)
        self.dice = dice

    def edit(self, times: int) -> None:
        for _ in range(times):
            kind = self.dice.choice(EDITS)
            try:
                getattr(self, kind)()
            except (FileExistsError, NotADirectoryError, IsADirectoryError, FileNotFoundError):
                pass
            except OSError as error:
                if "not empty" not in str(error) and "Invalid argument" not in str(error):
                    raise

    def _all(self, *kinds: int) -> list[bytes]:
        found = []
        for place, folders, names in os.walk(self.folder):
            found += [os.path.join(place, name) for name in (*folders, *names)]
        return sorted(path for path in found if stat.S_IFMT(os.lstat(path).st_mode) in kinds)

    def _one(self, *kinds: int) -> bytes:
        found = self._all(*kinds)
        if not found:
            raise FileNotFoundError
        return self.dice.choice(found)

    def _new(self) -> bytes:
        place = self.dice.choice([self.folder, *self._all(stat.S_IFDIR)])
        return os.path.join(
            place, self.dice.choice(NAMES) if self.dice.random() < 0.8 else b"f%d" % self.dice.randrange(9)
        )

    def write(self) -> None:
        size = self.dice.choice([0, 1, 511, 512, 513, 5000, 70_000])
        with _create(self._new()) as stream:
            stream.write(self.dice.randbytes(size))

    def rewrite(self) -> None:
        """Change content in place and put size and mtime back: only the ctime tells."""
        path = self._one(stat.S_IFREG)
        about = os.lstat(path)
        with open(path, "r+b") as stream:
            stream.write(self.dice.randbytes(about.st_size))
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))

    def append(self) -> None:
        with open(self._one(stat.S_IFREG), "ab") as stream:
            stream.write(b"more")

    def sparse(self) -> None:
        with _create(self._new()) as stream:
            stream.seek(self.dice.randrange(1 << 20, 4 << 20))
            stream.write(b"end")
            stream.truncate(5 << 20)

    def folder_(self) -> None:
        os.mkdir(self._new())

    def symlink(self) -> None:
        os.symlink(self.dice.choice([b"nowhere", b"..", b"a", b"/no/such/place", b"\xff"]), self._new())

    def fifo(self) -> None:
        os.mkfifo(self._new())

    def hard_link(self) -> None:
        os.link(self._one(stat.S_IFREG, stat.S_IFLNK), self._new(), follow_symlinks=False)

    def rename(self) -> None:
        os.rename(self._one(stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR), self._new())

    def replace(self) -> None:
        """A file becomes a folder, or a folder a file."""
        path = self._one(stat.S_IFREG, stat.S_IFDIR)
        if os.path.isdir(path):
            shutil.rmtree(path)
            Path(os.fsdecode(path)).write_bytes(b"was a folder")
        else:
            os.unlink(path)
            os.mkdir(path)

    def remove(self) -> None:
        path = self._one(stat.S_IFREG, stat.S_IFLNK, stat.S_IFIFO, stat.S_IFDIR)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)

    def chmod(self) -> None:
        os.chmod(self._one(stat.S_IFREG, stat.S_IFDIR), self.dice.choice([0o644, 0o755, 0o400, 0o500, 0o4755, 0o1777]))

    def utime(self) -> None:
        when = self.dice.choice([-1, -1_500_000_001, 123_456_789, 0, 1_700_000_000_123_456_789, 5_000_000_000 * 10**9])
        os.utime(self._one(stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK), ns=(when, when), follow_symlinks=False)

    def attribute(self) -> None:
        try:
            os.setxattr(self._one(stat.S_IFREG, stat.S_IFDIR), "user.yurt", self.dice.randbytes(9))
        except OSError as error:
            if "not supported" not in str(error):
                raise


EDITS = [
    *(
        ["write"] * 5
        + ["folder_"] * 3
        + ["rename"] * 3
        + ["rewrite", "append", "sparse", "symlink", "fifo", "hard_link"]
    ),
    *("hard_link", "replace", "remove", "chmod", "utime", "attribute"),
]
