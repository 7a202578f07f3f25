"""Which files belong to a project: tracked, changed and new ones, of nested repositories too, ignored ones not."""

from __future__ import annotations

import contextlib
import os
import stat
import struct
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from yurt.errors import RefusedError, UserError
from yurt.snapshot import git

IGNORE_FILE = b".yurtignore"
LISTING = ("ls-files", "-z", "--others", "--exclude-standard")
AT_ONCE = 8
"""So many nested repositories are asked at the same time."""

Files = dict[bytes, os.stat_result]


class Collecting:
    """Files and links below `root` that are there now. Git is asked at once; `files` waits for its answer.

    `own` is a git folder of yurt's, in which nothing is. `include` brings ignored files back by glob;
    `exclude` and .yurtignore leave files out, tracked ones too.
    """

    def __init__(self, root: Path, own: Path, *, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> None:
        self._root, self._own, self._exclude = root, own, exclude
        self._asked = deque([(b"", _ask(root, own, top=True))])
        asked = (["ls-files", "-z", "-o", "--", f":(glob){pattern}"] for pattern in include)
        self._included = [git.start(each, folder=root, own=own) for each in asked]
        self._ahead: Files = {}

    def look_ahead(self, names: Iterable[bytes]) -> None:
        """Look at files that will likely be named, while git is still busy."""
        start = os.path.join(os.fsencode(self._root), b"")
        for name in names:
            with contextlib.suppress(OSError):
                self._ahead[name] = os.lstat(start + name)

    def files(self) -> Files:
        """By path. Raises UserError for one that nobody lets us look at."""
        walk = _Walk(self._root, self._ahead)
        waiting = deque[bytes]()
        while waiting or self._asked:
            while waiting and len(self._asked) < AT_ONCE:
                inner = waiting.popleft()
                self._asked.append((inner, _ask(self._root / os.fsdecode(inner), self._own, top=False)))
            prefix, answer = self._asked.popleft()
            # A folder in the answer is a submodule, or a repository nobody tracks.
            waiting.extend(name + b"/" for name in walk.add([prefix + name.rstrip(b"/") for name in answer()]))
        for process in self._included:
            walk.add(name for name in _names(process.output()) if not name.endswith(b"/"))
        if self._exclude or walk.has(IGNORE_FILE):
            for name in _left_out(self._root, self._own, {*walk.files, *walk.closed}, self._exclude):
                walk.files.pop(name, None)
                walk.closed.pop(name, None)
        for name, error in walk.closed.items():
            raise unreadable(name, error)
        return walk.files


def from_elsewhere(
    paths: Sequence[Path], own: Path, files: Files, *, exclude: Sequence[str] = ()
) -> dict[bytes, bytes]:
    """Take files and folders from outside the project in, under their last name. Returns where each of them is.

    Raises UserError for one that is not there, or whose name the project has too.
    """
    found: dict[bytes, bytes] = {}
    for path in paths:
        name = os.fsencode(path.name)
        if name in files or any(each.startswith(name + b"/") for each in files):
            raise UserError(
                f"'{path}' is to travel with the code, and the project has a '{shown(name)}' of its own",
                code="usage",
                hint="rename one of them",
            )
        if path.is_dir():
            inner = Collecting(path, own, exclude=exclude).files()
            files.update({name + b"/" + each: about for each, about in inner.items()})
            found.update({name + b"/" + each: os.path.join(os.fsencode(path), each) for each in inner})
        else:
            try:
                files[name] = os.lstat(path)
            except OSError as error:
                raise UserError(
                    f"'{path}' is to travel with the code: {error.strerror}", code="usage", hint="see paths_to_copy"
                ) from None
            found[name] = os.fsencode(path)
    return found


class _Walk:
    """What of the names git gives is on disk. Each file is looked at once, each folder on the way too."""

    def __init__(self, root: Path, ahead: Files) -> None:
        self.files: Files = {}
        self.closed: dict[bytes, OSError] = {}
        """Those nobody lets us look at."""
        self._start, self._ahead = os.path.join(os.fsencode(root), b""), ahead
        self._folders = {b"": True}

    def add(self, names: Iterable[bytes]) -> list[bytes]:
        """Take these files in; returns those that are folders."""
        inner = []
        for name in names:
            folder = name.rpartition(b"/")[0]
            if not (self._folders.get(folder) or self._real(folder)):
                continue
            about = self._ahead.get(name) or self._look(name)
            if about is None:
                continue
            kind = stat.S_IFMT(about.st_mode)
            if kind in (stat.S_IFREG, stat.S_IFLNK):
                self.files[name] = about
            elif kind == stat.S_IFDIR:
                inner.append(name)
        return inner

    def has(self, name: bytes) -> bool:
        """Whether a file of this name is in any folder that was come through."""
        return any(os.path.lexists(os.path.join(self._start, folder, name)) for folder in self._folders)

    def _real(self, folder: bytes) -> bool:
        """Whether it is a folder in the project: git goes on to name files beyond a link that replaced a folder."""
        known = self._folders.get(folder)
        if known is None:
            about = self._look(folder)
            known = about is not None and stat.S_ISDIR(about.st_mode) and self._real(folder.rpartition(b"/")[0])
            self._folders[folder] = known
        return known

    def _look(self, name: bytes) -> os.stat_result | None:
        try:
            return os.lstat(self._start + name)
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            self.closed[name] = error
        return None


def unreadable(name: bytes, error: OSError) -> UserError:
    """The error for a file of the project that cannot be read."""
    return UserError(
        f"'{shown(name)}' cannot be read: {error.strerror}",
        code="usage",
        hint=f"make it readable, or leave it out (--exclude '{shown(name)}', or a line in .yurtignore)",
    )


def shown(name: bytes) -> str:
    """A path as text for a message, whatever bytes it has."""
    return name.decode(errors="backslashreplace")


def _ask(folder: Path, own: Path, *, top: bool) -> Callable[[], set[bytes]]:
    """Start asking for the files of one folder, those of repositories nested in it left out; call for the answer."""

    def plain() -> git.Running:
        return git.start(LISTING, folder=folder, own=own)

    is_top_of_repository = os.path.lexists(folder / ".git")
    if not is_top_of_repository and not (
        top and any(os.path.lexists(each / ".git") for each in folder.absolute().parents)
    ):
        started = plain()
        return lambda: _names(started.output())
    users = git.start([*LISTING, "--cached", "--", "."], folder=folder)
    # To a repository that ignores the folder as a whole, nothing new in it is worth naming.
    ignored = (
        None if is_top_of_repository else git.start(["check-ignore", "-q", "--no-index", "--", "."], folder=folder)
    )

    def finish() -> set[bytes]:
        try:
            names = _names(users.output())
        except RefusedError:
            if git.in_repository(folder):
                raise
            names = _names(plain().output())
        if ignored is not None and ignored.succeeds():
            names |= _names(plain().output())
        return names

    return finish


def _left_out(root: Path, own: Path, names: Iterable[bytes], exclude: Sequence[str]) -> set[bytes]:
    """Which of these files .yurtignore files and patterns name.

    Git answers this for the entries of an index, without a walk over folders that are ignored anyway.
    """
    index = own / "asked"  # not "index": to `own` itself nothing is tracked
    index.write_bytes(_index(sorted(names)))
    patterns = [f"--exclude={pattern}" for pattern in exclude]
    asked = ["ls-files", "-z", "--cached", "--ignored", f"--exclude-per-directory={IGNORE_FILE.decode()}", *patterns]
    return _names(git.start(asked, folder=root, own=own, index=index).output())


def _index(names: Sequence[bytes]) -> bytes:
    """A git index of files of which nothing but the name is known."""
    import hashlib

    empty_blob = bytes.fromhex("e69de29bb2d1d6434b8b29ae775ad8c2e48c5391")
    entries = [struct.pack(">4sLL", b"DIRC", 2, len(names))]
    for name in names:
        entry = struct.pack(">24xL12x20sH", 0o100644, empty_blob, min(len(name), 0xFFF)) + name
        entries.append(entry.ljust(len(entry) + 8 - len(entry) % 8, b"\0"))
    content = b"".join(entries)
    return content + hashlib.sha1(content).digest()


def _names(listing: bytes) -> set[bytes]:
    return {name for name in listing.split(b"\0") if name}
