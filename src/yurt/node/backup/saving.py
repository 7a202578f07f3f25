"""Saves files into packs and reads the packs back: what is then in them, also if files change at the same time."""

import os
import stat
import time
from typing import Dict, Iterable, List, Optional, Set, Tuple

from yurt.node.backup import programs, storage
from yurt.node.backup.entries import CTIME, INODE, LINKS, MODE, MTIME, SIZE, UNSURE, Entry, Key, key_of, unsure
from yurt.node.backup.errors import DamagedError, shown
from yurt.node.backup.manifest import Pack
from yurt.node.backup.pack_read import list_pack
from yurt.node.backup.pack_write import write_pack
from yurt.node.backup.plan import Plan
from yurt.node.backup.progress import OnProgress, Progress
from yurt.node.backup.reach import Reach, split
from yurt.node.backup.scan import GIT, TICK, Scan
from yurt.node.backup.tar_headers import Member

AGAIN = 256 << 20
"""Files that changed while they were read are read a second time if they have at most this many bytes together."""


class Saved:
    """The outcome of saving: entries, packs, and what could not be saved as it was."""

    def __init__(self) -> None:
        self.entries: Dict[bytes, Entry] = {}
        self.packs: List[Pack] = []
        self.vanished: Set[bytes] = set()
        self.unreadable: Set[bytes] = set()
        self.changing: Set[bytes] = set()
        self.renewed: Set[bytes] = set()
        """Files of git repositories that are newer than the walk: a branch may name objects that it has not seen."""

    def add(self, later: "Saved", paths: Iterable[bytes]) -> None:
        """Add the outcome of a later pass, which saved these paths."""
        again = set(paths)
        self.entries.update(later.entries)
        self.packs += later.packs
        self.vanished |= later.vanished
        self.unreadable = (self.unreadable - again) | later.unreadable
        self.changing = (self.changing - again - later.vanished) | later.changing
        self.renewed = later.renewed


class Saver:
    """Saves the files of one workspace."""

    def __init__(self, folder: bytes, backups: str, name: str, report: OnProgress) -> None:
        self.folder = folder
        self.backups = backups
        self.name = name
        self.report = report
        self._written: List[str] = []

    def save(self, scanned: Scan, todo: Plan, compression: str) -> Saved:
        """Save what the plan wants. Each file is saved as it is on return, or listed as an exception."""
        saved = Saved()
        keys = {path: scanned.keys[path] for path in todo.saved}
        if not keys:
            return saved
        self._compression = programs.choose(compression)
        wait_for_clock(keys.values())
        with Reach(self.folder) as reach:
            pending = self._round(reach, keys, saved)
            saved.renewed = {path for path in pending if GIT in b"/" + path}
            if pending and sum(key[SIZE] for key in pending.values()) <= AGAIN:
                wait_for_clock(pending.values())
                pending = self._round(reach, pending, saved)
        saved.changing = set(pending)
        return saved

    def undo(self) -> None:
        """Remove the packs, which no version names."""
        for name in self._written:
            storage.remove(os.path.join(self.backups, name))

    def _round(self, reach: Reach, keys: Dict[bytes, Key], saved: Saved) -> Dict[bytes, Key]:
        """Save these files once. Returns those that changed since, with their new keys."""
        again: Dict[bytes, Key] = {}
        pieces: Dict[bytes, List[bytes]] = {}
        for path in keys:
            pieces.setdefault(split(path)[0], []).append(path)
        for above, paths in pieces.items():
            pack, found = self._pack(reach, above, [(path, keys[path][SIZE]) for path in paths])
            for path in paths:
                content = found.get(path[len(above) + 1 :] if above else path)  # by its name in the pack
                now = _look(reach, path)
                if now is None:
                    saved.vanished.add(path)
                elif content is None:
                    saved.unreadable.add(path)
                elif now == keys[path] and _agrees(content, now):
                    saved.entries[path] = Entry(now, pack.name, content.name if above else b"")
                else:
                    mode = stat.S_IFREG | content.mode
                    key = (mode, content.size, content.mtime_ns, now[INODE], now[LINKS], UNSURE)
                    saved.entries[path] = Entry(key, pack.name, content.name if above else b"")
                    if stat.S_ISREG(now[MODE]):
                        again[path] = now
            saved.packs.append(pack)
        return again

    def _pack(self, reach: Reach, above: bytes, files: List[Tuple[bytes, int]]) -> Tuple[Pack, Dict[bytes, Member]]:
        """Write one pack and read it back."""
        start = len(above) + 1 if above else 0
        count = "-%d" % len(self._written) if self._written else ""
        name = "p%s%s%s" % (self.name, count, self._compression.suffix)
        progress = Progress(self.report, "write", sum(size for _, size in files))
        members = [path[start:] for path, _ in files]
        size = write_pack(self.backups, name, reach.base(above), members, progress)
        self._written.append(name)
        progress.end()
        progress = Progress(self.report, "verify", size)
        checksum, found = list_pack(self.backups, Pack(name, size, "", 0, 0), progress)
        if not set(found).issubset(members):
            raise DamagedError(name)
        progress.end()
        return Pack(name, size, checksum, sum(each.size for each in found.values()), len(found)), found


def wait_for_clock(keys: Iterable[Key]) -> None:
    """Wait until a change of these files would change their times. Then what is read now belongs to these keys."""
    latest = max((key[CTIME] for key in keys), default=0)
    left = latest + TICK - time.time() * 1e9
    if 0 < left <= 2 * TICK:
        time.sleep(left / 1e9)


def sure(key: Key, now: float) -> Key:
    """Return a key, marked as unsure if its ctime is so new at `now` that another change could have the same one."""
    return key if key[CTIME] + TICK <= now * 1e9 else unsure(key)


def _look(reach: Reach, path: bytes) -> Optional[Key]:
    try:
        return key_of(os.lstat(reach.path(path)))
    except OSError:
        return None


def _agrees(content: Member, key: Key) -> bool:
    return (content.size, content.mtime_ns, content.mode) == (key[SIZE], key[MTIME], stat.S_IMODE(key[MODE]))


def notes(saved: Saved, scanned: Scan) -> List[str]:
    """Return what the user should know, as short sentences."""
    found = []
    problems = scanned.problems
    moving = [*scanned.moving, *saved.renewed, *(path for path in saved.changing if GIT in b"/" + path)]
    if moving:
        first = ", ".join(sorted({shown(path.rstrip(b"/")) or "the top folder" for path in moving})[:5])
        found.append("changed during the backup, so that its files may not fit together: %s" % first)
    for what, paths in (("cannot be read", saved.unreadable), ("changed while being read", saved.changing)):
        if paths:
            first = ", ".join(shown(path) for path in sorted(paths)[:5])
            found.append("%d %s: %s%s" % (len(paths), what, first, ", …" if len(paths) > 5 else ""))
    return found + ["not backed up: %s" % each for each in problems[:5]]
