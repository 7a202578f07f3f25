"""Walks a workspace: the key of every file, folder, link and FIFO in it."""

import os
import stat
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence

from yurt.node.backup import ignore
from yurt.node.backup.entries import ROOT, Key, root_key
from yurt.node.backup.errors import BackupError, shown
from yurt.node.backup.reach import Reach

KEPT = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK, stat.S_IFIFO)


class Scan(NamedTuple):
    """One walk over a workspace."""

    keys: Dict[bytes, Key]
    groups: Dict[bytes, bytes]
    """For each path of an inode with several paths: the first of them."""
    problems: List[str]
    """Folders that could not be read, and mounted file systems, which are left out."""


def scan(folder: bytes, patterns: Sequence[str] = (), on_count: Optional[Callable[[int], None]] = None) -> Scan:
    """Return what a workspace has now. What disappears during the walk is left out; devices and sockets always are."""
    keys: Dict[bytes, Key] = {}
    problems: List[str] = []
    linked: Dict[int, List[bytes]] = {}
    top = _top(folder)
    keys[ROOT] = root_key(top)
    first = ignore.Rules(ignore.parse([os.fsencode(each) for each in patterns]))
    waiting = [(b"", first)]
    with Reach(folder) as reach:
        while waiting:
            prefix, above = waiting.pop()
            try:
                place = reach.path(prefix)
                with os.scandir(place) as listing:
                    entries = list(listing)
                names = {each.name for each in entries}
                rules = above.within(place, prefix) if ignore.NAME in names else above
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                problems.append("%s: %s" % (shown(prefix.rstrip(b"/") or folder), error.strerror))
                continue
            quiet = rules.above is None and not rules.own
            for each in entries:
                try:
                    found = each.stat(follow_symlinks=False)
                except OSError:
                    continue
                mode = found.st_mode
                kind = stat.S_IFMT(mode)
                path = prefix + each.name
                if kind not in KEPT or not (quiet or not rules.ignores(path, kind == stat.S_IFDIR)):
                    continue
                if kind == stat.S_IFDIR:
                    keys[path] = (mode, 0, found.st_mtime_ns, found.st_ino, 1, found.st_ctime_ns)
                    if found.st_dev == top.st_dev:
                        waiting.append((path + b"/", rules))
                    else:
                        problems.append("%s: another file system" % shown(path))
                    continue
                links = found.st_nlink
                keys[path] = (mode, found.st_size, found.st_mtime_ns, found.st_ino, links, found.st_ctime_ns)
                if links > 1:
                    linked.setdefault(found.st_ino, []).append(path)
            if on_count is not None:
                on_count(len(keys))
    groups = {path: min(paths) for paths in linked.values() if len(paths) > 1 for path in paths}
    return Scan(keys, groups, problems)


def _top(folder: bytes) -> os.stat_result:
    """Return the status of the workspace itself. BackupError: it is gone, or not a folder."""
    try:
        found = os.lstat(folder)
    except OSError as error:
        raise BackupError("cannot read the workspace %s: %s" % (shown(folder), error.strerror)) from None
    if not stat.S_ISDIR(found.st_mode):
        raise BackupError("cannot read the workspace %s: it is not a folder" % shown(folder))
    return found
