"""Builds the tree of a version in an empty folder, and checks every entry of it."""

import os
import shutil
import stat
from typing import Dict, List

from yurt.node.backup import attributes
from yurt.node.backup.entries import INODE, MODE, MTIME, ROOT, SIZE, Entry, Key, key_of, member, root_key
from yurt.node.backup.errors import BackupError, shown
from yurt.node.backup.manifest import Pack
from yurt.node.backup.pack_read import extract
from yurt.node.backup.progress import Progress
from yurt.node.backup.reach import Reach

STAGING = b".yurt-staging"
SECOND = 2 * 10**9
"""Nanoseconds: file systems with coarse times may round an mtime by less than this."""


class Rebuild:
    """Restores entries into a folder that only this process uses."""

    def __init__(
        self,
        backups: str,
        packs: Dict[str, Pack],
        entries: Dict[bytes, Entry],
        folder: bytes,
        progress: Progress,
        *,
        acls: bool = True,
    ) -> None:
        self.backups = backups
        self.packs = packs
        self.entries = entries
        self.folder = folder
        self.progress = progress
        self.acls = acls
        self.folders = sorted(path for path in entries if stat.S_ISDIR(entries[path].key[MODE]) and path != ROOT)

    def run(self) -> Dict[bytes, Entry]:
        """Return the entries with the keys of the restored files. BackupError or OSError: the folder is unusable."""
        wanted: Dict[str, Dict[bytes, List[bytes]]] = {}
        for path, entry in self.entries.items():
            if entry.pack:
                wanted.setdefault(entry.pack, {}).setdefault(member(path, entry), []).append(path)
        with Reach(self.folder) as reach:
            for path in self.folders:
                os.mkdir(reach.path(path), 0o700)
            for name in sorted(wanted):
                self._content(reach, self.packs[name], wanted[name])
            self._others(reach)
            found = {}
            for path, entry in self.entries.items():
                if not stat.S_ISDIR(entry.key[MODE]):
                    found[path] = entry._replace(key=self._check(reach, path, entry))
            self._check_groups(found)
            for path in [*reversed(self.folders), ROOT]:
                entry = self.entries[path]
                place = reach.path(path)
                attributes.write(place, entry.extra, acls=self.acls)
                found[path] = entry._replace(key=self._check(reach, path, entry))
            found[ROOT] = found[ROOT]._replace(key=root_key(os.lstat(self.folder)))
        return found

    def _content(self, reach: Reach, pack: Pack, wanted: Dict[bytes, List[bytes]]) -> None:
        """Restore regular files from one pack: in place if they have their names in it."""
        if all(name in paths for name, paths in wanted.items()):
            extract(self.backups, pack, set(wanted), self.folder, self.progress, acls=self.acls)
            for name, paths in wanted.items():
                self._link(reach, name, [path for path in paths if path != name])
            return
        staging = os.path.join(self.folder, STAGING)
        number = 0
        while os.path.lexists(staging):
            number += 1
            staging = os.path.join(self.folder, STAGING + b"%d" % number)
        os.mkdir(staging, 0o700)
        extract(self.backups, pack, set(wanted), staging, self.progress, acls=self.acls)
        for name, paths in wanted.items():
            try:
                os.rename(os.path.join(staging, name), reach.path(paths[0]))
            except FileNotFoundError:
                raise BackupError("the pack %s lacks %s" % (pack.name, shown(name))) from None
            self._link(reach, paths[0], paths[1:])
        shutil.rmtree(staging)

    def _link(self, reach: Reach, first: bytes, others: List[bytes]) -> None:
        """Give a restored file its other paths: links if they were links, copies if they were not."""
        for path in others:
            if self.entries[path].group and self.entries[path].group == self.entries[first].group:
                os.link(reach.path(first), reach.path(path))
            else:
                shutil.copy2(reach.path(first), reach.path(path))

    def _others(self, reach: Reach) -> None:
        """Create symbolic links and FIFOs. They come after all contents, so that nothing is written through a link."""
        firsts: Dict[bytes, bytes] = {}
        for path, entry in self.entries.items():
            mode = entry.key[MODE]
            if not (stat.S_ISLNK(mode) or stat.S_ISFIFO(mode)):
                continue
            place = reach.path(path)
            if entry.group in firsts:
                os.link(reach.path(firsts[entry.group]), place, follow_symlinks=False)
                continue
            if entry.group:
                firsts[entry.group] = path
            if stat.S_ISLNK(mode):
                os.symlink(entry.extra, place)
            else:
                os.mkfifo(place, 0o600)

    def _check(self, reach: Reach, path: bytes, entry: Entry) -> Key:
        """Compare a restored entry with its version, set mode and mtime if they differ, and return its key."""
        place = reach.path(path)
        try:
            key = key_of(os.lstat(place))
        except OSError:
            raise BackupError("%s was not restored: its pack lacks it" % shown(path)) from None
        want = entry.key
        is_link = stat.S_ISLNK(want[MODE])
        if key[MODE] != want[MODE] and stat.S_IFMT(key[MODE]) == stat.S_IFMT(want[MODE]) and not is_link:
            os.chmod(place, stat.S_IMODE(want[MODE]))
            key = key_of(os.lstat(place))
        if key[MTIME] != want[MTIME]:
            os.utime(place, ns=(want[MTIME], want[MTIME]), follow_symlinks=False)
            key = key_of(os.lstat(place))
        same = key[SIZE] == want[SIZE] and abs(key[MTIME] - want[MTIME]) < SECOND
        same = same and (os.readlink(place) == entry.extra if is_link else key[MODE] == want[MODE])
        if not same or stat.S_IFMT(key[MODE]) != stat.S_IFMT(want[MODE]):
            raise BackupError("%s was not restored as it was saved; restore another version" % shown(path))
        return key

    def _check_groups(self, found: Dict[bytes, Entry]) -> None:
        groups: Dict[bytes, int] = {}
        for path, entry in found.items():
            if entry.group and groups.setdefault(entry.group, entry.key[INODE]) != entry.key[INODE]:
                raise BackupError("%s was not restored as a hard link" % shown(path))
