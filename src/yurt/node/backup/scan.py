"""Walks a workspace: the key of every file, folder, link and FIFO in it."""

import os
import stat
import time
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from yurt.node.backup import ignore
from yurt.node.backup.entries import ROOT, Key, root_key
from yurt.node.backup.errors import BackupError, shown
from yurt.node.backup.reach import Reach

GIT = b"/.git/"
TICK = 20_000_000
"""Nanoseconds: changes closer together than this may leave the same times."""

KEPT = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK, stat.S_IFIFO)


class Scan(NamedTuple):
    """One walk over a workspace."""

    keys: Dict[bytes, Key]
    groups: Dict[bytes, bytes]
    """For each path of an inode with several paths: the first of them."""
    problems: List[str]
    """Folders that could not be read, and mounted file systems, which are left out."""
    unread: List[bytes]
    """The folders that could not be read; what they had is unknown."""
    moving: List[bytes]
    """Folders, and files of git repositories, that changed during the walk: what was found may not fit together."""
    room: int
    """Bytes that the files use on the disk, at least."""


def scan(folder: bytes, patterns: Sequence[str] = (), on_count: Optional[Callable[[int], None]] = None) -> Scan:
    """Return what a workspace has now. What disappears during the walk is left out; devices and sockets always are.

    BackupError: the workspace itself cannot be read.
    """
    walk = _Walk(folder)
    with Reach(folder) as reach:
        waiting = [(b"", ignore.Rules(ignore.parse([os.fsencode(each) for each in patterns])))]
        while waiting:
            prefix, above = waiting.pop()
            waiting += walk.folder(reach, prefix, above)
            if on_count is not None:
                on_count(len(walk.keys))
    groups = {path: min(paths) for paths in walk.linked.values() if len(paths) > 1 for path in paths}
    return Scan(walk.keys, groups, walk.problems, walk.unread, walk.moving, walk.room)


class _Walk:
    """What a walk has found so far."""

    def __init__(self, folder: bytes) -> None:
        top = _top(folder)
        self.top, self.device = folder, top.st_dev
        self.keys: Dict[bytes, Key] = {ROOT: root_key(top)}
        self.linked: Dict[int, List[bytes]] = {}
        self.problems: List[str] = []
        self.unread: List[bytes] = []
        self.moving: List[bytes] = []
        self.room = 0
        self.since = int(time.time() * 1e9) - TICK

    def folder(self, reach: Reach, prefix: bytes, above: ignore.Rules) -> List[Tuple[bytes, ignore.Rules]]:
        """Look at one folder; return the folders in it, with the rules for them."""
        try:
            place = reach.path(prefix)
            with os.scandir(place) as listing:
                entries = list(listing)
            if os.stat(place).st_ctime_ns >= self.since:
                self.moving.append(prefix)
        except OSError as error:
            self._miss(prefix, error)
            return []
        rules = above
        if any(each.name == ignore.NAME for each in entries):
            rules = _rules(above, place, prefix, self.problems)
        quiet = rules.above is None and not rules.own
        below = []
        for each in entries:
            try:
                found = each.stat(follow_symlinks=False)
            except OSError:
                self.moving.append(prefix)
                continue
            kind = stat.S_IFMT(found.st_mode)
            path = prefix + each.name
            if kind not in KEPT or not (quiet or not rules.ignores(path, kind == stat.S_IFDIR)):
                continue
            if kind != stat.S_IFDIR:
                self._file(path, found)
                continue
            self.keys[path] = (found.st_mode, 0, found.st_mtime_ns, found.st_ino, 1, found.st_ctime_ns)
            if found.st_dev == self.device:
                below.append((path + b"/", rules))
            else:
                self.problems.append("%s: another file system" % shown(path))
        return below

    def _file(self, path: bytes, found: os.stat_result) -> None:
        changed, links = found.st_ctime_ns, found.st_nlink
        self.keys[path] = (found.st_mode, found.st_size, found.st_mtime_ns, found.st_ino, links, changed)
        if found.st_ino not in self.linked:
            self.room += min(found.st_blocks * 512, found.st_size)
        if links > 1:
            self.linked.setdefault(found.st_ino, []).append(path)
        if changed >= self.since and GIT in b"/" + path:
            self.moving.append(path)

    def _miss(self, prefix: bytes, error: OSError) -> None:
        """Note a folder that cannot be read. BackupError: it is the workspace itself."""
        if not prefix:
            raise cannot_read(self.top, error) from None
        if isinstance(error, (FileNotFoundError, NotADirectoryError)):
            self.moving.append(prefix)
            return
        self.unread.append(prefix)
        self.problems.append("%s: %s" % (shown(prefix.rstrip(b"/")), error.strerror))


def _rules(above: ignore.Rules, place: bytes, prefix: bytes, problems: List[str]) -> ignore.Rules:
    """Return the rules of a folder with a .yurtignore. One that cannot be read is a problem, and leaves nothing out."""
    try:
        return above.within(place, prefix)
    except OSError as error:
        problems.append("the patterns of %s: %s" % (shown(prefix + ignore.NAME), error.strerror))
        return above


def cannot_read(folder: bytes, error: OSError) -> BackupError:
    """Return the error for a workspace that cannot be read; nothing may be concluded about its files."""
    return BackupError("cannot read the workspace %s: %s" % (shown(folder), error.strerror))


def _top(folder: bytes) -> os.stat_result:
    """Return the status of the workspace itself. BackupError: it is gone, or not a folder."""
    try:
        found = os.lstat(folder)
    except OSError as error:
        raise cannot_read(folder, error) from None
    if not stat.S_ISDIR(found.st_mode):
        raise BackupError("cannot read the workspace %s: it is not a folder" % shown(folder))
    return found
