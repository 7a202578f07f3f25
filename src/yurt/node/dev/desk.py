"""The workspace on this node and its backups: opened, saved, restored. One caller at a time."""

import os
import time
from typing import Any, Callable, Dict, List, Optional, Sequence

from yurt.node import backup
from yurt.node.dev import power, recovery, sources, swap
from yurt.node.dev.config import Config
from yurt.node.dev.layer import Layer
from yurt.node.dev.place import Place
from yurt.node.dev.status import Status, backup_of
from yurt.node.files import NodeError, NotThereError, remove

UNHURRIED = ("interval", "asked")
"""The reasons of saves that have time to read old packs again; the others are made before the node goes."""


class Desk:
    """What a dev node has open. `workspace` is None until `open` has put the folder in place."""

    def __init__(self, config: Config, place: Place, layer: Layer, status: Status, log: Callable[[str], None]) -> None:
        self.config, self.place, self.layer, self.status, self.log = config, place, layer, status, log
        self.workspace: Optional[backup.Workspace] = None
        self.stopping = False
        """Set when the job ends: a restore then gives up, as it would not be complete in time."""

    def open(self) -> None:
        """Put the workspace in place: kept, restored or created. Raises NodeError or BackupError."""
        swap.finish(self.place)
        swap.tidy(self.place)
        path = self.place.workspace
        if os.path.lexists(path) and (os.path.islink(path) or not os.path.isdir(path)):
            raise NodeError("%s is not a folder; rename it, or choose another workspace name" % path)
        workspace = self._load()
        known = {each.number for each in backup.versions(self.config.backups)}
        if workspace.base and workspace.base not in known:
            remove(self.place.state)  # of another backups folder, or dropped there: the next backup is a full one
            workspace = self._load()
        newest = backup.newest(self.config.backups)
        wanted = self._wanted()
        if newest and os.path.isdir(path) and power.is_doubtful(self.place.folder):
            workspace = self._replace_doubtful(workspace, newest.number)
        if not os.path.isdir(path):
            if wanted:
                self._go_back(wanted)
            elif newest:
                self._replace(newest.number)
                self._warn_of_newer(newest.number)
            else:
                self._create()
            power.settle(self.place.folder)
            return
        if not workspace.base and not swap.is_ours(self.place):
            raise NodeError("%s is there, and yurt did not make it; rename it, or choose another workspace name" % path)
        if wanted:
            self._return_to(workspace, wanted)
        elif newest is None or workspace.base == newest.number:
            self.workspace = workspace
            self.log("kept %s (v%d)" % (path, workspace.base))
        elif workspace.changes() or workspace.lost():
            self._fork(workspace, newest.number)
        else:
            self._replace_saved(workspace, newest.number)
        power.settle(self.place.folder)
        self.status.set(version=self._open_workspace().base)

    def save(self, reason: str) -> Optional[Any]:
        """Save the workspace as a new version, and drop old versions; None if nothing changed.

        Raises BackupError: nothing was published.
        """
        workspace = self._open_workspace()
        if reason in UNHURRIED:
            workspace.read_in_turn(lambda: self.stopping)
        version = workspace.save(reason, run=self.config.run, host=os.uname().nodename)
        swap.note_made(self.place)
        self.status.set(version=workspace.base, progress=None)
        if version is None:
            return None
        self.status.set(backup=backup_of(version))
        text = "backup v%d: %d files, %s, %.1f s" % (
            version.number,
            version.new_files,
            recovery.size(version.new_size),
            version.seconds,
        )
        if version.fork:
            text += "; v%d is a fork of v%d: another dev node saved the workspace since then" % (
                version.number,
                version.parent,
            )
            self.status.set(fork=text.partition("; ")[2])
        self.log("%s; %s" % (text, version.note) if version.note else text)
        return version

    def retain(self) -> None:
        """Drop versions that the rule does not keep."""
        keep = self.config.keep
        dropped = backup.retain(self.config.backups, keep.last, keep.days, keep.weeks, self.config.limit)
        if dropped:
            self.log("dropped old versions %s" % ", ".join("v%d" % each for each in dropped))

    def verify(self) -> int:
        """Read the newest version of this workspace back; return its number. Raises BackupError if it is damaged.

        The next save then writes again what is damaged.
        """
        number = self._open_workspace().base
        backup.verify(self.config.backups, number, self._reporting)
        self.status.set(progress=None)
        return number

    def check(self) -> List[int]:
        """Read all versions back; return those that are damaged. The next save writes again what it needs of them."""
        found = backup.check(self.config.backups, self._reporting)
        self.status.set(progress=None)
        return found

    def restore(self, number: int) -> str:
        """Replace the workspace by a version; return the path of the previous one. It is saved and kept."""
        number = self._existing(number)
        aside = self._set_aside(self._open_workspace(), number)
        self.layer.make()
        return aside

    def restore_paths(self, number: int, paths: List[str]) -> Dict[str, Any]:
        """Restore some paths of a version into a fresh folder beside the workspace."""
        number = self._existing(number)
        stamp = time.strftime("%Y%m%d-%H%M%S")
        target = swap.unused("%s.restored-v%d-%s" % (self.place.workspace, number, stamp))
        inside = [self._inside(each) for each in paths]
        try:
            found = backup.restore_paths(self.config.backups, number, inside, target, on_progress=self._reporting)
        except backup.DamagedError as error:
            raise self._damaged(error, number, inside) from None
        self.status.set(progress=None)
        self.log("restored %d paths of v%d to %s" % (len(paths), number, target))
        return {"folder": target, "paths": found}

    def _inside(self, path: str) -> str:
        """Return a path relative to the workspace, also if the user gave it from the root."""
        above = self.place.workspace
        return os.path.relpath(path, above) if os.path.normpath(path).startswith(above + os.sep) else path

    def _wanted(self) -> int:
        """Return the version that the user asked for, unless an earlier start of this run restored it."""
        if not self.config.restore or os.path.exists(self._restored_mark()):
            return 0
        return self._existing(self.config.restore)

    def _restored_mark(self) -> str:
        return os.path.join(self.config.run_folder, "restored-v%d" % self.config.restore)

    def _existing(self, number: int) -> int:
        newest = backup.newest(self.config.backups)
        numbers = [each.number for each in backup.versions(self.config.backups)]
        if not number and newest:
            return int(newest.number)
        if number not in numbers:
            raise NotThereError("there is no version v%d; see `yurt dev backups`" % number)
        return number

    def _create(self) -> None:
        self.status.set(phase="creating")
        target = swap.fresh(self.place, "new")
        os.mkdir(target, 0o700)
        try:
            sources.fill(self.config.source, target, os.path.basename(self.place.workspace), self.config.run_folder)
        except BaseException:
            remove(target)
            if not self.stopping:
                sources.discard(self.config.source)
            raise
        swap.put_in_place(self.place, target)
        self.workspace = self._load()
        source = self.config.source
        origin = "from %s %s" % (source.kind, sources.hide_password(source.value)) if source.kind else "empty"
        self.log("created %s, %s" % (self.place.workspace, origin.strip()))
        self.layer.make()  # a part of the first version
        self.save("first")
        sources.discard(source)

    def _replace_saved(self, workspace: "backup.Workspace", newest: int) -> None:
        """Replace a workspace whose changes are all saved. It stays aside if it has anything that is in no version."""
        is_needed = workspace.has_more_than_saved()
        needed, free = recovery.room(self.place, self.config, newest)
        if needed > free and not is_needed:
            self._remove_saved(workspace, newest)
            self._replace(newest)
            return
        aside = self._replace(newest, ".old-v%d" % workspace.base)
        if is_needed:
            self.status.set(aside=aside)
            self.log("the previous workspace has files that are not backed up, so it stays in %s" % aside)
        else:
            remove(aside)

    def _remove_saved(self, workspace: "backup.Workspace", newest: int) -> None:
        """Remove a workspace whose files are all in a version, to make room, if `newest` is whole."""
        self.status.set(phase="restoring", note="checking v%d" % newest)
        try:
            backup.verify(self.config.backups, newest, self._reporting)
        except backup.DamagedError as error:
            raise self._damaged(error, newest) from None
        saved = swap.fresh(self.place, "saved")
        os.rename(self.place.workspace, saved)
        remove(saved)
        self.log("removed the older copy of the workspace (v%d), to make room for v%d" % (workspace.base, newest))

    def _replace_doubtful(self, workspace: "backup.Workspace", newest: int) -> "backup.Workspace":
        """Restore a workspace again that this node lost power on: its files may be damaged.

        It stays if the version is damaged too: these may then be the only files.
        """
        try:
            backup.verify(self.config.backups, newest, self._reporting)
        except backup.DamagedError as error:
            text = "this node lost power just after a restore, so look at your files; %s" % error
            self.status.set(fork=text)
            self.log(text)
            return workspace
        aside = self._replace(newest, ".before-power-loss")
        text = "this node lost power just after a restore, so v%d was restored again; the previous folder is %s" % (
            newest,
            aside,
        )
        self.status.set(aside=aside)
        self.log(text)
        return self._open_workspace()

    def _fork(self, workspace: "backup.Workspace", newest: int) -> None:
        """Keep unsaved changes of a workspace that another node has saved since: as a version and as a folder."""
        base, lost = workspace.base, workspace.lost()
        aside = self._replace(newest, ".fork-v%d" % base, lambda: self._save_as("fork", workspace))
        number = workspace.base
        unsaved = "changes that were not saved after v%d" % base if base else "a workspace that was never saved"
        unsaved = "files of v%d whose backups are damaged" % base if lost else unsaved
        text = "this node had %s; see v%d and the folder %s" % (unsaved, number, aside)
        self.status.set(fork=text, aside=aside)
        self.log(text)

    def _return_to(self, workspace: "backup.Workspace", number: int) -> None:
        """Restore the version that the user wants, or take this node's copy of it if its backups are damaged."""
        if number != workspace.base or not workspace.lost():
            self._set_aside(workspace, number)
            return
        self.workspace = workspace
        self.log("kept %s, as the backups of v%d are damaged" % (self.place.workspace, number))
        self._publish(number)

    def _set_aside(self, workspace: "backup.Workspace", number: int) -> str:
        """Save what is there, and replace it by a version."""
        aside = self._go_back(number, ".before-v%d" % number, lambda: self._save_as("restore", workspace))
        self.status.set(aside=aside)
        self.log("the previous workspace is %s" % aside)
        return aside

    def _save_as(self, reason: str, workspace: "backup.Workspace") -> None:
        workspace.save(reason, run=self.config.run, host=os.uname().nodename)

    def _go_back(self, number: int, suffix: str = "", save: Callable[[], None] = lambda: None) -> str:
        """Restore the version that the user wants, and publish it as the newest: the next node starts from it."""
        aside = self._replace(number, suffix, save)
        self._publish(number)
        return aside

    def _publish(self, number: int) -> None:
        """Save the workspace, which has the files of a version, as the newest version, unless that is the newest."""
        newest, workspace = backup.newest(self.config.backups), self._open_workspace()
        if newest is not None and newest.number != number:
            workspace.succeed(newest)
            self.save("restore of v%d" % number)
        if self.config.restore == number:
            with open(self._restored_mark(), "w"):
                pass

    def _replace(self, number: int, suffix: str = "", save: Callable[[], None] = lambda: None) -> str:
        """Restore a version and make it the workspace; return where the previous one is, if it was there.

        `save` saves the previous one. It is called when the restore is complete: a failed start leaves no version.
        """
        began = time.time()
        phase = self.status.get("phase")
        self.status.set(phase="restoring" if phase != "ready" else phase, note="restoring v%d" % number)
        target, state = swap.fresh(self.place, "restored"), swap.fresh(self.place, "state")
        try:
            needed, free = recovery.room(self.place, self.config, number)
            if needed > free:
                raise recovery.too_full(self.place, number, needed, free)
            backup.restore(self.config.backups, number, target, state, on_progress=self._reporting)
        except backup.DamagedError as error:
            raise self._damaged(error, number) from None
        finally:
            self.status.set(progress=None, note="")
        save()
        aside = swap.unused(self.place.workspace + suffix) if suffix else ""
        power.begin(self.place.folder)
        swap.put_in_place(self.place, target, state, aside)
        self.workspace = self._load()
        self.status.set(version=number)
        self.log("restored v%d in %.0f s" % (number, time.time() - began))
        return aside

    def _warn_of_newer(self, number: int) -> None:
        """Tell the user that a newer version than the restored one cannot be read."""
        newer = [each for each in backup.unreadable(self.config.backups) if each > number]
        if newer:
            text = "v%d cannot be read, as its file is damaged; v%d was restored" % (newer[-1], number)
            self.status.set(fork=text)
            self.log(text)

    def _damaged(self, error: backup.DamagedError, number: int, paths: Sequence[str] = ()) -> NodeError:
        """Return the error for a version that cannot be restored, after looking for one that can."""
        whole, running = backup.newest_whole(self.config.backups, self._reporting), self.status.get("phase") == "ready"
        return recovery.damaged(error, self.config, number, whole, running=running, paths=paths)

    def _reporting(self, phase: str, done: int, total: int) -> None:
        if self.stopping:
            raise NodeError("the job ends, so this was stopped")
        self.status.set(progress={"phase": phase, "done": done, "total": total})

    def _load(self) -> "backup.Workspace":
        return backup.Workspace(
            self.place.workspace,
            self.config.backups,
            self.place.state,
            compression=self.config.compression,
            on_progress=self.status.progress(),
        )

    def _open_workspace(self) -> "backup.Workspace":
        if self.workspace is None:
            raise NodeError("the workspace is not there yet")
        return self.workspace
