"""A workspace that is backed up: keeps in memory what the last save found, so that the next one is quick."""

import os
import random
import stat
import time
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Set

from yurt.node.backup import attributes, checking, manifest, state, storage
from yurt.node.backup.entries import MODE, SIZE, Entry, Key, unsure
from yurt.node.backup.errors import BackupError, from_os, shown
from yurt.node.backup.keeping import Keeping
from yurt.node.backup.manifest import Pack
from yurt.node.backup.plan import Plan, differing, plan, unwanted_packs
from yurt.node.backup.progress import OnProgress
from yurt.node.backup.publishing import Draft, publish
from yurt.node.backup.reach import Reach
from yurt.node.backup.saving import Saved, Saver, notes, sure, wait_for_clock
from yurt.node.backup.scan import TICK, Scan, scan
from yurt.node.backup.versions import Version, newest, read_version, versions

FULL_INDEX = 4
"""A new full index is written when more than one in this many entries differs from the last one."""

PASSES = 4
"""How often a save looks again at a workspace that changes at the same time."""

LEAST_FREE = 0.1
"""A note warns if less than this part of the shared disk would stay free."""


class Details(NamedTuple):
    """What a version says about itself."""

    reason: str
    run: str
    host: str
    note: str
    began: float
    token: str
    room: int


class Workspace:
    """A folder on a node's disk and its backups folder. Not for several threads at once."""

    def __init__(
        self,
        folder: str,
        backups: str,
        state_folder: str,
        ignore: Sequence[str] = (),
        compression: str = "auto",
        *,
        on_progress: OnProgress = None,
    ) -> None:
        self.folder = os.fsencode(os.path.abspath(folder))
        self.backups = os.path.abspath(backups)
        self.state_folder = os.path.abspath(state_folder)
        self.ignore = tuple(ignore)
        self.compression = compression
        self.on_progress = on_progress
        self.base = 0
        """The version that the folder was last saved as or restored from; 0 if that is unknown."""
        self._id = ""
        self._known: Dict[bytes, Entry] = {}
        self._packs: Dict[str, Pack] = {}
        self._index = ""
        self._differing: Set[bytes] = set()
        self._skipped: Dict[bytes, Key] = {}
        self._journal_is_current = True
        self._is_to_publish = False
        self._load()

    def changes(self) -> int:
        """Return the number of entries that differ from `base`."""
        changed, gone = differing(scan(self.folder, self.ignore), self._known)
        return len(changed) + len(gone)

    def has_more_than_saved(self) -> bool:
        """Return whether the folder has anything that `base` lacks, such as ignored files. Changes are not counted."""
        failed: List[OSError] = []
        for place, folders, files in os.walk(self.folder, onerror=failed.append):
            prefix = os.path.relpath(place, self.folder) + b"/" if place != self.folder else b""
            if any(prefix + name not in self._known for name in [*folders, *files]):
                return True
        return bool(failed)

    def lost(self) -> Set[str]:
        """Return the packs of `base` that are missing, truncated, or noted as damaged: the next save replaces them."""
        damaged = checking.known(self.backups).damaged
        return {name for name, pack in self._packs.items() if name in damaged or not self._has(pack)}

    def read_in_turn(self, stop: Callable[[], bool]) -> None:
        """Read some packs of `base` again, others than the last time, until `stop` or for half a minute."""
        checking.read_in_turn(self.backups, self._packs, stop)

    def succeed(self, version: Version) -> None:
        """Make the next save the successor of a version, as after the user went back to an older one.

        That save publishes a version also if nothing changed.
        """
        self.base, self._id, self._is_to_publish = version.number, version.id, True

    def save(self, reason: str, run: str = "", host: str = "") -> Optional[Version]:
        """Back the folder up as a new version; None if nothing changed since `base`, and that is whole.

        On return the version is complete, on the disk and read back; files whose pack is lost were saved again.
        BackupError: nothing was published, and the next save starts from the same state. If another writer has
        published since `base`, the version is a fork.
        """
        try:
            return self._save(reason, run, host)
        except OSError as error:
            raise from_os(error, "back up to %s" % shown(self.backups)) from None

    def _save(self, reason: str, run: str, host: str) -> Optional[Version]:
        began = time.time()
        storage.prepare(self.backups)
        scanned = scan(self.folder, self.ignore)
        changed, gone = differing(scanned, self._known)
        changed = [path for path in changed if self._skipped.get(path) != scanned.keys[path]]
        storage.sweep(self.backups)
        self._leave_unreadable_base()
        if self._index and not manifest.is_sound(self.backups, self._index):
            self._index = ""
        lost = self.lost()
        whole = not lost and bool(self._index) and manifest.is_sound(self.backups, "v%d" % self.base)
        if whole and not changed and not gone and not self._is_to_publish:
            return None
        with Keeping(self.backups, [*self._packs, self._index]) as keeping:
            lost |= self.lost()  # retention by another process may have been faster than the announcement
            left = set(gone) if lost else set()
            gone += [  # in a folder that cannot be read now: no pack has them any more
                path
                for path, entry in self._known.items()
                if entry.pack in lost and path not in scanned.keys and path not in left
            ]
            todo = plan(scanned, self._known, changed, gone, unwanted_packs(self._known, self._packs, lost))
            warning = self._space(sum(scanned.keys[path][SIZE] for path in todo.saved))
            saver = Saver(self.folder, self.backups, "%d%s" % (self.base + 1, keeping.token), self.on_progress)
            try:
                saved = saver.save(scanned, todo, self.compression)
                updates = self._updates(scanned, todo, saved, self._known, lost)
                scanned = self._settle(scanned, saver, saved, updates)
                note = "; ".join([*notes(saved, scanned), *_replaced(lost, self._left(lost, updates)), *warning])
                details = Details(reason, run, host, note, began, keeping.token, scanned.room)
                version = self._publish(updates, saved, details)
            except BaseException:
                saver.undo()
                raise
        self._skipped = {path: scanned.keys[path] for path in saved.unreadable if path in scanned.keys}
        return version

    def _settle(self, scanned: Scan, saver: Saver, saved: Saved, updates: state.Updates) -> Scan:
        """Save what changed during the walk, until a walk finds no further change; a few times at most.

        Without this, a version could have a git branch without its commit, or a folder neither at its old nor at its
        new place. Returns the last walk.
        """
        for _ in range(PASSES):
            if not scanned.moving and not saved.renewed:
                break
            time.sleep(TICK / 1e9)  # what changed just before the walk is older than the next one then
            before, scanned = scanned, scan(self.folder, self.ignore)
            known = {**self._known, **{path: entry for path, entry in updates.items() if entry is not None}}
            for path in [path for path, entry in updates.items() if entry is None]:
                known.pop(path, None)
            changed, gone = differing(scanned, known)
            changed = [
                path for path in changed if path not in saved.unreadable or before.keys.get(path) != scanned.keys[path]
            ]
            todo = plan(scanned, known, changed, gone, set())
            more = saver.save(scanned, todo, self.compression)
            updates.update(self._updates(scanned, todo, more, known, set()))
            saved.add(more, todo.saved)
        return scanned

    def _publish(self, updates: state.Updates, saved: Saved, details: Details) -> Version:
        """Publish a version with these changes, then keep them as the present state."""
        entries = dict(self._known)
        differs = set(self._differing)
        for path, entry in updates.items():
            differs.add(path)
            if entry is None:
                entries.pop(path, None)
            else:
                entries[path] = entry
        used = {entry.pack for entry in entries.values() if entry.pack}
        packs = {name: pack for name, pack in self._packs.items() if name in used}
        packs.update({pack.name: pack for pack in saved.packs if pack.name in used})
        index = self._index
        if len(differs) * FULL_INDEX > len(entries) or not os.path.isfile(os.path.join(self.backups, index)):
            index = ""
        identity = "%016x" % random.SystemRandom().getrandbits(64)
        draft = Draft(
            Version(
                number=0,
                time=details.began,
                reason=details.reason,
                host=details.host,
                run=details.run,
                parent=self.base,
                fork=False,
                files=sum(1 for entry in entries.values() if not stat.S_ISDIR(entry.key[MODE])),
                size=sum(entry.key[SIZE] for entry in entries.values()),
                new_files=sum(1 for entry in updates.values() if entry is not None),
                new_size=sum(pack.size for pack in saved.packs),
                seconds=0.0,
                verified=True,
                note=details.note,
                id=identity,
            ),
            index,
            entries,
            packs,
            differs if index else set(),
            details.token,
            details.room,
        )
        inode = os.stat(self.folder).st_ino
        length = -1

        def before(number: int) -> None:
            nonlocal length
            if length >= 0:
                state.undo(self.state_folder, length)
            length = self._remember(inode, number, identity, updates)

        try:
            version, name = publish(self.backups, draft, self._id, before)
        except BaseException:
            if length >= 0:
                state.undo(self.state_folder, length)
            raise
        self.base, self._id, self._known, self._packs = version.number, identity, entries, packs
        self._index, self._differing, self._is_to_publish = name, draft.differing, False
        self._confirm(inode)
        for pack in saved.packs:
            if pack.name not in used:
                storage.remove(os.path.join(self.backups, pack.name))
        return version

    def _updates(
        self, scanned: Scan, todo: Plan, saved: Saved, known: Dict[bytes, Entry], lost: Set[str]
    ) -> state.Updates:
        """Return the new entry of each changed path, None for each that is gone."""
        updates: state.Updates = dict.fromkeys(todo.gone)
        first = {path: leader for leader, paths in todo.saved.items() for path in paths}
        wait_for_clock(scanned.keys[path] for path in todo.changed if path not in first)
        now = time.time()
        with Reach(self.folder) as reach:
            for path in todo.changed:
                group = scanned.groups.get(path, b"")
                if path in first:
                    entry = _content(path, first[path], saved, known.get(path), now)
                    if entry is not None and entry.pack not in lost:
                        updates[path] = entry._replace(group=group) if group else entry
                    elif entry is not None or path in saved.vanished:
                        updates[path] = None
                    continue
                key = sure(scanned.keys[path], now)
                if path in todo.reused:
                    pack, name = todo.reused[path]
                    updates[path] = Entry(key, pack, b"" if name == path else name, group)
                    continue
                try:
                    updates[path] = Entry(key, "", _extra(reach.path(path), key), group)
                except OSError:
                    updates[path] = None
        return updates

    def _left(self, lost: Set[str], updates: state.Updates) -> int:
        """Return how many files of lost packs are not in the workspace any more, nor in another pack of a version."""
        if not lost:
            return 0
        files: Set[bytes] = set()
        safe = {path for path in self._known if path not in updates}
        safe.update(path for path, entry in updates.items() if entry is not None)
        for version in versions(self.backups):
            try:
                entries = manifest.read(self.backups, version.number).entries
            except BackupError:
                continue
            files.update(path for path, entry in entries.items() if entry.pack in lost)
            safe.update(path for path, entry in entries.items() if entry.pack and entry.pack not in lost)
        return len(files - safe)

    def _load(self) -> None:
        """Take over what this node knows from an earlier process."""
        try:
            inode = os.stat(self.folder).st_ino
        except OSError:
            return
        known = state.load(self.state_folder, inode, self._is_published)
        if known is None or not known.base:
            return
        self.base, self._id = known.base, known.id
        self._leave_unreadable_base()
        try:
            held = manifest.read(self.backups, known.base)
        except BackupError:
            return  # the entries are not usable without the packs: the next save takes everything
        if held.header["version"]["id"] == known.id:
            self._known, self._packs = known.entries, held.packs
            self._index, self._differing = held.header["index"], held.differing

    def _leave_unreadable_base(self) -> None:
        """If the file of `base` is damaged, succeed the version before it, so that the next one is no fork."""
        is_there = os.path.lexists(os.path.join(self.backups, "v%d" % self.base))
        if is_there and read_version(self.backups, self.base) is None:
            before = newest(self.backups)
            if before is not None and before.number < self.base:
                self.succeed(before)

    def _is_published(self, number: int, identity: str) -> bool:
        version = read_version(self.backups, number)
        return version is not None and version.id == identity

    def _remember(self, inode: int, number: int, identity: str, updates: state.Updates) -> int:
        """Write to the journal before publishing. The journal is a cache: a full disk of the node stops no backup."""
        if not self._journal_is_current:
            return -1
        try:
            return state.append(self.state_folder, inode, number, identity, updates)
        except OSError:
            self._journal_is_current = False
            return -1

    def _confirm(self, inode: int) -> None:
        """Confirm the published version in the journal; rewrite the journal if it is incomplete or long."""
        try:
            long = state.size(self.state_folder) > 400 * len(self._known) + (1 << 20)
            if self._journal_is_current and not long:
                state.confirm(self.state_folder, self._id)
                return
            state.start(self.state_folder, inode, state.Known(self.base, self._id, self._known))
            self._journal_is_current = True
        except OSError:
            self._journal_is_current = False

    def _has(self, pack: Pack) -> bool:
        try:
            return os.stat(os.path.join(self.backups, pack.name)).st_size == pack.size
        except OSError:
            return False

    def _space(self, size: int) -> List[str]:
        """Return a warning if the shared disk will be nearly full."""
        found = os.statvfs(self.backups)
        free = found.f_bavail * found.f_frsize
        if free - size >= LEAST_FREE * found.f_blocks * found.f_frsize:
            return []
        return ["the disk of the backups is nearly full: %d MB free" % (free >> 20)]


def _content(path: bytes, leader: bytes, saved: Saved, old: Optional[Entry], now: float) -> Optional[Entry]:
    """Return the entry of a saved file. One that cannot be read keeps the content that it had."""
    entry = saved.entries.get(leader)
    if entry is not None:
        name = entry.extra or leader
        return Entry(sure(entry.key, now), entry.pack, b"" if name == path else name)
    if leader in saved.unreadable and old is not None and old.pack:
        return old._replace(key=unsure(old.key))
    return None


def _replaced(lost: Set[str], left: int) -> List[str]:
    """Return a note on the packs that a save replaces; `left`: how many of their files it could not save."""
    names = sorted(lost)
    first = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
    but = ", but not %d %s no longer in the workspace" % (left, "file that is" if left == 1 else "files that are")
    return ["files of damaged or missing packs were saved again: %s" % first + (but if left else "")] if names else []


def _extra(path: bytes, key: Key) -> bytes:
    if stat.S_ISLNK(key[MODE]):
        return os.readlink(path)
    return attributes.read(path) if stat.S_ISDIR(key[MODE]) else b""
