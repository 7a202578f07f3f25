"""Lists folders, and copies files so that a reader sees the whole file or none."""

import errno
import os
import stat
from typing import Callable, List, NamedTuple, Optional, Sequence, Set

CHUNK = 1 << 20
LARGE = 1 << 20
"""From this size on, a file is flushed to the disk before it gets its name: a full disk may say so only then."""

ASIDE = ".yurt-aside"

NAMED = 5
"""Files of an output that are named each: those that cannot be copied, or will not be of use."""

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


def scan(root: str, follow: bool = True) -> List[Entry]:
    """Return everything below a root, folders before their contents. Raises OSError.

    A link to something in the same root stays a link; with `follow`, the target of any other is listed in its place.
    """
    walk = _Walk(os.path.realpath(root), follow)
    walk.visit(walk.root, "", set())
    return walk.found


def scan_output(root: str, replaced: Sequence[str], lost: Sequence[str], say: Callable[[str], None]) -> List[Entry]:
    """Return everything below an output, folders before their contents. Raises OSError.

    A link that leads into a folder in `replaced`, such as an input, is replaced by what it leads to. Others stay links;
    those into a folder in `lost`, which no other node sees, are named by `say`, like what cannot be copied.
    """
    walk = _OutputWalk(os.path.realpath(root), replaced, lost)
    walk.visit(walk.root, "", set())
    for note in walk.notes[:NAMED]:
        say(note)
    if len(walk.notes) > NAMED:
        say("and %d more like these" % (len(walk.notes) - NAMED))
    return walk.found


def is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


class _Walk:
    """A walk through a root."""

    def __init__(self, root: str, follow: bool) -> None:
        self.root = root
        self.follow = follow
        self.found = []  # type: List[Entry]

    def visit(self, path: str, relative: str, above: Set[str]) -> None:
        about = os.stat(path)
        if stat.S_ISREG(about.st_mode):
            self.found.append(_entry(relative, "file", about, path))
        elif not stat.S_ISDIR(about.st_mode):
            self.on_special(relative)
        if not stat.S_ISDIR(about.st_mode):
            return
        real = os.path.realpath(path)
        if real in above:
            self.on_loop(path, relative)
            return
        self.found.append(_entry(relative, "folder", about, path))
        for name in sorted(os.listdir(path)):
            each, inner = os.path.join(path, name), os.path.join(relative, name)
            if name.endswith(ASIDE):
                continue
            link = self.kept_link(each, inner)
            if link is None:
                self.enter(each, inner, above | {real})
            else:
                self.found.append(_entry(inner, "link", os.lstat(each), link))

    def enter(self, path: str, relative: str, above: Set[str]) -> None:
        self.visit(path, relative, above)

    def kept_link(self, path: str, _relative: str) -> Optional[str]:
        """Return the target of a link that stays a link; else None."""
        if not os.path.islink(path):
            return None
        inside = _link_inside(path, self.root)
        if inside:
            return inside
        return None if self.follow and os.path.exists(path) else os.readlink(path)

    def on_loop(self, path: str, _relative: str) -> None:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)

    def on_special(self, relative: str) -> None:
        """Ignore what is neither a file nor a folder."""


class _OutputWalk(_Walk):
    """A walk through an output, which says what is not copied, or not of use on other nodes."""

    def __init__(self, root: str, replaced: Sequence[str], lost: Sequence[str]) -> None:
        super().__init__(root, False)
        self.replaced = [os.path.realpath(each) for each in replaced]
        self.lost = [os.path.realpath(each) for each in lost]
        self.notes = []  # type: List[str]
        self.name = os.path.basename(root)

    def enter(self, path: str, relative: str, above: Set[str]) -> None:
        if not os.path.islink(path):
            self.visit(path, relative, above)
            return
        before, count = self.root, len(self.found)
        self.root = os.path.realpath(path)  # links in what it leads to may stay links
        self.visit(path, relative, above)
        self.root = before
        # Inputs are read-only, but a later start may write to its outputs.
        self.found[count:] = [each._replace(mode=each.mode | 0o200) for each in self.found[count:]]

    def kept_link(self, path: str, relative: str) -> Optional[str]:
        if not os.path.islink(path):
            return None
        inside = _link_inside(path, self.root)
        if inside:
            return inside
        real = os.path.realpath(path)
        if os.path.exists(path) and any(is_inside(real, each) for each in self.replaced):
            return None
        if any(is_inside(real, each) for each in self.lost):
            self.notes.append("%s is a link to %s, which is only on this node" % (self.named(relative), real))
        return os.readlink(path)

    def on_loop(self, _path: str, relative: str) -> None:
        self.notes.append("%s was not copied: its links lead to a folder above it" % self.named(relative))

    def on_special(self, relative: str) -> None:
        self.notes.append("%s was not copied: it is neither a file nor a folder" % self.named(relative))

    def named(self, relative: str) -> str:
        return os.path.join(self.name, relative).rstrip("/")


def _link_inside(path: str, root: str) -> str:
    """Return the relative target of a link to something that exists in a root; empty for any other."""
    target, real = os.readlink(path), os.path.realpath(path)
    if not is_inside(real, root) or not os.path.exists(path):
        return ""
    return os.path.relpath(real, os.path.realpath(os.path.dirname(path))) if os.path.isabs(target) else target


def _entry(path: str, kind: str, about: os.stat_result, source: str) -> Entry:
    size = about.st_size if kind == "file" else 0
    return Entry(path, kind, size, about.st_mtime_ns, stat.S_IMODE(about.st_mode), source)


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
