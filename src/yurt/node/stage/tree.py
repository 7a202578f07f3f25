"""Lists folders, and copies files so that a reader sees the whole file or none."""

import errno
import os
import stat
from typing import Callable, List, NamedTuple, Optional, Sequence, Set

CHUNK = 1 << 20
LARGE = 1 << 20
"""From this size on, a file is flushed to the disk before it gets its name: a full disk may say so only then."""

ASIDE = ".yurt-aside"

Check = Callable[[], None]
"""Called before each chunk; stops the copy with an exception."""


class Entry(NamedTuple):
    """A file, a folder or a link below a root."""

    path: str
    """Relative to the root; empty for the root itself."""
    kind: str
    """file, folder or link."""
    size: int
    changed: int
    """When it was changed last, in nanoseconds."""
    mode: int
    source: str
    """The path to read; the target of a link."""


class ChangedError(OSError):
    """A file changed while it was copied."""


def scan(
    root: str,
    follow: bool = True,
    replaced: Sequence[str] = (),
    lost: Sequence[str] = (),
    note: Callable[[str, str], None] = lambda _path, _text: None,
) -> List[Entry]:
    """Return everything below a root, folders before their contents. Raises OSError.

    A link to something in the same root stays a link; with `follow`, the target of any other is listed in its place.
    Without it, only of a link that leads into a folder in `replaced`. `note` gets what is not listed, and links into a
    folder in `lost`. All these folders are real paths.
    """
    walk = _Walk(os.path.realpath(root), follow, replaced, lost, note)
    walk.visit(walk.root, "", set(), walk.root)
    return walk.found


def is_inside(path: str, folders: Sequence[str]) -> bool:
    return any(path == each or path.startswith(each.rstrip("/") + "/") for each in folders)


class _Walk:
    """A walk through a root."""

    def __init__(
        self,
        root: str,
        follow: bool,
        replaced: Sequence[str],
        lost: Sequence[str],
        note: Callable[[str, str], None],
    ) -> None:
        self.root = root
        self.follow = follow
        self.replaced = replaced
        self.lost = lost
        self.note = note
        self.found = []  # type: List[Entry]

    def visit(self, path: str, relative: str, above: Set[str], root: str) -> None:
        """List a path. `root`: links to something in it stay links; the target of a link is a root of its own."""
        about = os.stat(path)
        # Inputs are read-only, but a later start may write to its outputs.
        mode = 0 if root == self.root else 0o200
        if stat.S_ISREG(about.st_mode):
            self.found.append(_entry(relative, "file", about, path, mode))
            return
        if not stat.S_ISDIR(about.st_mode):
            self.note(relative, "was not copied: it is neither a file nor a folder")
            return
        real = os.path.realpath(path)
        if real in above:
            if self.follow:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            self.note(relative, "was not copied: its links lead to a folder above it")
            return
        self.found.append(_entry(relative, "folder", about, path, mode))
        for name in sorted(os.listdir(path)):
            each, inner = os.path.join(path, name), os.path.join(relative, name)
            if name.endswith(ASIDE):
                continue
            link = self.kept_link(each, inner, root)
            if link:
                self.found.append(_entry(inner, "link", os.lstat(each), link))
            else:
                own = os.path.islink(each) and not self.follow
                self.visit(each, inner, above | {real}, os.path.realpath(each) if own else root)

    def kept_link(self, path: str, relative: str, root: str) -> str:
        """Return the target of a link that stays a link, relative if it is in the root; else an empty text."""
        if not os.path.islink(path):
            return ""
        target, real, exists = os.readlink(path), os.path.realpath(path), os.path.exists(path)
        if exists and is_inside(real, [root]):
            return os.path.relpath(real, os.path.realpath(os.path.dirname(path))) if os.path.isabs(target) else target
        if exists and (self.follow or is_inside(real, self.replaced)):
            return ""
        if is_inside(real, self.lost):
            self.note(relative, "is a link to %s, which is only on this node" % real)
        return target


def _entry(path: str, kind: str, about: os.stat_result, source: str, mode: int = 0) -> Entry:
    size = about.st_size if kind == "file" else 0
    return Entry(path, kind, size, about.st_mtime_ns, stat.S_IMODE(about.st_mode) | mode, source)


def copy_file(entry: Entry, target: str, check: Check, mode: Optional[int] = None) -> None:
    """Copy a file with its time and its mode. Raises OSError; then nothing has the target's name."""
    aside = os.path.join(os.path.dirname(target), ".%s%s" % (os.path.basename(target)[:200], ASIDE))
    try:
        with open(entry.source, "rb") as source:
            copied = _fill(source.fileno(), aside, check)
        if copied != entry.size:
            raise ChangedError(0, "it changed while it was copied", entry.source)
        os.chmod(aside, entry.mode if mode is None else mode)
        os.utime(aside, ns=(entry.changed, entry.changed))
        os.rename(aside, target)
    except BaseException as error:
        try:
            os.unlink(aside)
        except OSError:
            pass
        if isinstance(error, OSError) and error.errno and not error.filename:  # of write, such as a full disk
            raise OSError(error.errno, error.strerror, target) from None
        raise


def _fill(source: int, aside: str, check: Check) -> int:
    copied = 0
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        while True:
            check()
            chunk = os.read(source, CHUNK)
            if not chunk:
                break
            view = memoryview(chunk)
            while view:
                view = view[os.write(descriptor, view) :]
            copied += len(chunk)
        if copied >= LARGE:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return copied


def copy_link(entry: Entry, target: str) -> None:
    if os.path.islink(target) and os.readlink(target) == entry.source:
        return
    aside = os.path.join(os.path.dirname(target), ".%s%s" % (os.path.basename(target)[:200], ASIDE))
    try:
        os.unlink(aside)
    except OSError:
        pass
    os.symlink(entry.source, aside)
    os.rename(aside, target)


def is_same(entry: Entry, target: str) -> bool:
    """Return whether a file at the target has the size and the time of an entry."""
    try:
        about = os.lstat(target)
    except OSError:
        return False
    # Some file systems keep no nanoseconds.
    close = abs(about.st_mtime_ns - entry.changed) < 1000 or about.st_mtime_ns == entry.changed // 10**9 * 10**9
    return stat.S_ISREG(about.st_mode) and about.st_size == entry.size and close
