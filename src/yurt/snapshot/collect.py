"""Lists the files of a project: tracked, changed and new ones, also in nested repositories, without ignored ones."""

from __future__ import annotations

import os
import stat
import struct
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from yurt import private
from yurt.errors import RefusedError, UserError
from yurt.model import ids
from yurt.snapshot import git, secrets

IGNORE_FILE = b".yurtignore"
LISTING = ("ls-files", "-z", "--others", "--exclude-standard")
MOST = 200_000
"""Maximum number of files of a project. More are data, not code."""

AT_ONCE = 8
"""Number of nested repositories that are listed at the same time."""

RESULTS = b"results/"
"""The folder of fetched results. What is fetched is no code, also if the folder is the project's own."""

SPECIAL = "special"
"""The file in the store with the pipes, sockets and devices found so far: only changed folders are searched again."""

Files = dict[bytes, os.stat_result]


class Collecting:
    """Files and links that exist below `root`. Git starts immediately; `files` waits for its output.

    `own` is an empty git folder of yurt. `include` adds ignored files by glob, and `add` those of them that do not look
    like secrets; `exclude` and .yurtignore leave files out, also tracked ones. The folders `apart`, which are yurt's,
    are left out if they are below `root`.
    Folders that changed after the time `since`, in ns, are searched for what git does not list.
    """

    def __init__(
        self,
        root: Path,
        own: Path,
        *,
        include: Sequence[str] = (),
        add: Sequence[str] = (),
        exclude: Sequence[str] = (),
        apart: Sequence[Path] = (),
        since: int = 0,
    ) -> None:
        self._root, self._own, self._exclude = root, own, exclude
        self._apart, self._since = _below(root, apart), since
        self._listings = deque([(b"", _list(root, own, top=True))])
        self._included, self._added = ([_matching(root, own, each) for each in globs] for globs in (include, add))
        self._known: Files = {}
        self.included: set[bytes] = set()
        """Files that the globs of `include` match, after `files`."""
        self.secrets: set[bytes] = set()
        """Files that are left out because their names are those of secrets, after `files`."""
        self._searched: list[bytes] = []

    def stat_early(self, names: Iterable[bytes]) -> None:
        """Read the stat of files that git will probably list, while git is still running."""
        start = os.path.join(os.fsencode(self._root), b"")
        known, lstat = self._known, os.lstat
        for name in names:
            try:  # noqa: SIM105 # `suppress` takes as long as the stat
                known[name] = lstat(start + name)
            except OSError:  # `files` finds out why
                pass

    def files(self) -> Files:
        """Return the files by path. UserError for a file whose stat cannot be read."""
        walk = _Walk(self._root, self._known, self._since)
        waiting = deque[bytes]()
        while waiting or self._listings:
            while waiting and len(self._listings) < AT_ONCE:
                inner = waiting.popleft()
                self._listings.append((inner, _list(self._root / os.fsdecode(inner), self._own, top=False)))
            prefix, answer = self._listings.popleft()
            names = self._without_own(answer(), prefix)
            if len(names) > MOST and not self._exclude and not os.path.lexists(self._root / os.fsdecode(IGNORE_FILE)):
                raise _too_many([prefix + name for name in names])
            # A folder in the listing is a submodule, or an untracked repository.
            waiting.extend(name + b"/" for name in walk.add([prefix + name.rstrip(b"/") for name in names]))
        self.included, added = self._matched(self._included), self._matched(self._added)
        wanted = self.included | added
        walk.add(wanted)
        if self._exclude or walk.has(IGNORE_FILE):
            for name in _excluded(self._root, self._own, {*walk.files, *walk.unreadable}, self._exclude):
                walk.files.pop(name, None)
                walk.unreadable.pop(name, None)
        for name in [name for name in walk.files if name.startswith(RESULTS) and _is_fetched(name)]:
            if name not in wanted:
                del walk.files[name]
        if len(walk.files) > MOST:
            raise _too_many(walk.files)
        for name in secrets.by_name([*walk.files, *walk.unreadable]) - self.included:
            walk.unreadable.pop(name, None)
            if name in walk.files and not self._is_certificate(name, walk.files[name]):
                self.secrets.add(name)
                walk.files.pop(name)
        for name, error in walk.unreadable.items():
            raise unreadable(name, error)
        self._searched = walk.changed
        return walk.files

    def special(self, store: Path) -> list[bytes]:
        """Return pipes, sockets and devices, which no snapshot contains, after `files`; without ignored ones."""
        noted = store / SPECIAL
        if not self._searched and not os.path.lexists(noted):  # saves the import
            return []
        from yurt.snapshot import special

        found = special.find(self._root, noted, self._searched)
        if not found:
            return []
        left = [name for name in found if not (name.startswith(RESULTS) and _is_fetched(name))]
        gone = special.ignored(self._root, self._own, left) | _excluded(self._root, self._own, left, self._exclude)
        return [name for name in left if name not in gone]

    def _matched(self, processes: Iterable[git.Running]) -> set[bytes]:
        """Return the files that globs match."""
        listed = (name for each in processes for name in _names(each.output()) if not name.endswith(b"/"))
        return self._without_own(set(listed), b"")

    def _without_own(self, names: set[bytes], prefix: bytes) -> set[bytes]:
        """Return the names that are not in a folder of yurt; `prefix` is the folder of all of them."""
        return {each for each in names if not (prefix + each).startswith(self._apart)} if self._apart else names

    def _is_certificate(self, name: bytes, about: os.stat_result) -> bool:
        if not name.endswith(b".pem") or not stat.S_ISREG(about.st_mode):
            return False
        try:
            return secrets.is_certificate(name, (self._root / os.fsdecode(name)).read_bytes())
        except OSError:
            return False


def _matching(root: Path, own: Path, pattern: str) -> git.Running:
    """Start listing the files that match a glob, also ignored ones."""
    return git.start(["ls-files", "-z", "-o", "--", f":(glob){pattern}"], folder=root, own=own)


def _below(root: Path, folders: Sequence[Path]) -> tuple[bytes, ...]:
    """Return the folders that are below `root`, as beginnings of the paths of their files."""
    start, found = os.path.realpath(root), list[bytes]()
    for each in folders:
        real = os.path.realpath(each)
        if real.startswith(os.path.join(start, "")):
            found.append(os.fsencode(os.path.relpath(real, start)) + b"/")
    return tuple(found)


def add_outside(
    paths: Sequence[Path], own: Path, files: Files, *, exclude: Sequence[str] = ()
) -> tuple[dict[bytes, bytes], set[bytes]]:
    """Add files and folders from outside the project to `files`, under their last name. Return their real paths, and
    the files that are left out because their whole paths are those of secrets.

    UserError for a path that does not exist, or whose name also exists in the project.
    """
    found: dict[bytes, bytes] = {}
    left_out = set[bytes]()
    for path in paths:
        name = os.fsencode(path.name)
        if name in files or any(each.startswith(name + b"/") for each in files):
            raise UserError(
                f"'{path}' in paths_to_copy conflicts with '{shown(name)}' of the project",
                code="usage",
                hint="rename one of the two",
            )
        if path.is_dir():
            collecting, start = Collecting(path, own, exclude=exclude), os.path.join(os.fsencode(path), b"")
            inner = collecting.files()
            withheld = {each[len(start) :] for each in secrets.by_name([start + each for each in inner])}
            inner = {each: about for each, about in inner.items() if each not in withheld}
            left_out |= {name + b"/" + each for each in withheld | collecting.secrets}
            files.update({name + b"/" + each: about for each, about in inner.items()})
            found.update({name + b"/" + each: os.path.join(os.fsencode(path), each) for each in inner})
        else:
            try:
                files[name] = os.lstat(path)
            except OSError as error:
                raise UserError(
                    f"cannot read '{path}': {error.strerror}",
                    code="usage",
                    hint="fix the path in `paths_to_copy`",
                ) from None
            found[name] = os.fsencode(path)
    return found, left_out


class _Walk:
    """Finds which of the names from git exist on disk, with one stat for each file and each folder."""

    def __init__(self, root: Path, known: Files, since: int) -> None:
        self.files: Files = {}
        self.unreadable: dict[bytes, OSError] = {}
        """Files whose stat cannot be read."""
        self._start, self._known = os.path.join(os.fsencode(root), b""), known
        self._folders = {b"": True}
        self._since = since
        top = self._stat(b"")
        self.changed = [b""] if top is None or top.st_mtime_ns > since else []
        """Folders that changed after `since`."""

    def add(self, names: Iterable[bytes]) -> list[bytes]:
        """Add these files; return those that are folders."""
        inner = []
        files, folders, known = self.files, self._folders, self._known
        for name in names:
            folder = name.rpartition(b"/")[0]
            if not (folders.get(folder) or self._real(folder)):
                continue
            about = known.get(name) or self._stat(name)
            if about is None:
                continue
            kind = stat.S_IFMT(about.st_mode)
            if kind in (stat.S_IFREG, stat.S_IFLNK):
                files[name] = about
            elif kind == stat.S_IFDIR:
                inner.append(name)
        return inner

    def has(self, name: bytes) -> bool:
        """Return whether any visited folder contains a file of this name."""
        return any(os.path.lexists(os.path.join(self._start, folder, name)) for folder in self._folders)

    def _real(self, folder: bytes) -> bool:
        """Return whether it is a folder in the project. Git also lists files below a link that replaced a folder."""
        known = self._folders.get(folder)
        if known is None:
            about = self._stat(folder)
            known = about is not None and stat.S_ISDIR(about.st_mode) and self._real(folder.rpartition(b"/")[0])
            self._folders[folder] = known
            if known and about is not None and about.st_mtime_ns > self._since:
                self.changed.append(folder)
        return known

    def _stat(self, name: bytes) -> os.stat_result | None:
        try:
            return os.lstat(self._start + name)
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            self.unreadable[name] = error
        return None


def _is_fetched(name: bytes) -> bool:
    """Whether a file in `results` was fetched from a run."""
    run = name.split(b"/")[1].decode(errors="replace")
    return name.count(b"/") > 1 and ids.names_folder(run.partition(".")[0])


def _too_many(names: Iterable[bytes]) -> UserError:
    """Return the error for a project with too many files; it names the folder with most of them."""

    counts = Counter(name.split(b"/", 1)[0] for name in names)
    folder, count = counts.most_common(1)[0]
    return UserError(
        f"the project has more than {MOST:,} files; '{shown(folder)}' has {count:,} of them",
        code="snapshot-too-large",
        hint=f"leave it out with a line in .gitignore or .yurtignore, or with `--exclude '{shown(folder)}'`",
    )


def unreadable(name: bytes, error: OSError) -> UserError:
    """Return the error for a file of the project that cannot be read."""
    return UserError(
        f"cannot read '{shown(name)}': {error.strerror}",
        code="usage",
        hint=f"make it readable, or exclude it with `--exclude '{shown(name)}'` or a line in .yurtignore",
    )


def shown(name: bytes) -> str:
    """Return a path as text for a message; bytes that are not UTF-8 are escaped."""
    return name.decode(errors="backslashreplace")


def _list(folder: Path, own: Path, *, top: bool) -> Callable[[], set[bytes]]:
    """Start listing the files of one folder, without nested repositories. Call the result to get the files."""

    def plain() -> git.Running:
        return git.start(LISTING, folder=folder, own=own)

    is_top_of_repository = os.path.lexists(folder / ".git")
    if not is_top_of_repository and not (
        top and any(os.path.lexists(each / ".git") for each in folder.absolute().parents)
    ):
        started = plain()
        return lambda: _names(started.output())
    users = git.start([*LISTING, "--cached", "--", "."], folder=folder)
    # A repository that ignores the whole folder does not list new files in it.
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


def _excluded(root: Path, own: Path, names: Iterable[bytes], exclude: Sequence[str]) -> set[bytes]:
    """Return which of these files match .yurtignore files or patterns.

    Git checks the entries of an index, without walking over ignored folders.
    """
    index = own / "asked"  # not "index": `own` itself tracks nothing
    private.write(index, _index(sorted(names)))
    patterns = [f"--exclude={pattern}" for pattern in exclude]
    command = ["ls-files", "-z", "--cached", "--ignored", f"--exclude-per-directory={IGNORE_FILE.decode()}", *patterns]
    return _names(git.start(command, folder=root, own=own, index=index).output())


def _index(names: Sequence[bytes]) -> bytes:
    """Return a git index of files that has only their names."""
    import hashlib

    empty_blob = bytes.fromhex("e69de29bb2d1d6434b8b29ae775ad8c2e48c5391")
    entries = [struct.pack(">4sLL", b"DIRC", 2, len(names))]
    for name in names:
        entry = struct.pack(">24xL12x20sH", 0o100644, empty_blob, min(len(name), 0xFFF)) + name
        entries.append(entry.ljust(len(entry) + 8 - len(entry) % 8, b"\0"))
    content = b"".join(entries)
    return content + hashlib.sha1(content).digest()


UPWARDS = (b"\0/", b"\0../", b"/../", b"\0..\0", b"/..\0")


def _names(listing: bytes) -> set[bytes]:
    """Return the names in a listing of git, which does not check those in the index that a project brings."""
    names = {name for name in listing.split(b"\0") if name}
    if any(each in b"\0%b\0" % listing for each in UPWARDS):
        names = {name for name in names if not any(each in b"\0%b\0" % name for each in UPWARDS)}
    return names
