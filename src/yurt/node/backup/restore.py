"""Restores a version: into a fresh folder beside the target, compared entry by entry, then renamed to the target."""

import os
import shutil
import stat
import time
from typing import Dict, Iterable, List, Sequence

from yurt.node.backup import checking, claims, manifest, state
from yurt.node.backup.entries import ROOT, Entry
from yurt.node.backup.errors import BackupError, DamagedError, MissingPathError, from_os, shown
from yurt.node.backup.manifest import Manifest
from yurt.node.backup.progress import OnProgress, Progress
from yurt.node.backup.rebuild import Rebuild
from yurt.node.backup.saving import sure, wait_for_clock


def restore(
    backups: str,
    number: int,
    target: str,
    state_folder: str = "",
    on_progress: OnProgress = None,
    *,
    acls: bool = True,
) -> None:
    """Restore a version as `target`, which must not exist. It is complete on return; BackupError: it is not there.

    DamagedError: a file that it needs is missing or damaged, which is then noted for the next save of any node.

    With a state folder, the next save of a Workspace there is incremental. Without `acls`, no access list is restored.
    """
    version = manifest.read(backups, number)
    _restore(backups, version, version.entries, target, state_folder=state_folder, on_progress=on_progress, acls=acls)


def restore_paths(
    backups: str, number: int, paths: Sequence[str], target: str, on_progress: OnProgress = None, *, acls: bool = True
) -> List[str]:
    """Restore some paths of a version, and what is below them, into a new folder `target`.

    Returns the restored paths other than folders. MissingPathError: the version has no such path; nothing is restored.
    """
    version = manifest.read(backups, number)
    wanted = _below(version.entries, _normal(paths), number)
    _restore(backups, version, wanted, target, on_progress=on_progress, acls=acls)
    return sorted(os.fsdecode(path) for path, entry in wanted.items() if not stat.S_ISDIR(entry.key[0]))


def packs_of(backups: str, number: int, paths: Sequence[str]) -> List[str]:
    """Return the names of the packs that `restore_paths` reads. MissingPathError if the version has no such path."""
    wanted = _below(manifest.read(backups, number).entries, _normal(paths), number)
    return sorted({entry.pack for entry in wanted.values() if entry.pack})


def _normal(paths: Sequence[str]) -> List[bytes]:
    return [os.fsencode(os.path.normpath(each)) for each in paths]


def _below(entries: Dict[bytes, Entry], paths: Iterable[bytes], number: int) -> Dict[bytes, Entry]:
    """Return the entries at and below some paths, with the folders that lead to them."""
    wanted: Dict[bytes, Entry] = {ROOT: entries[ROOT]}
    for path in paths:
        found = [each for each in entries if path in (ROOT, each) or each.startswith(path + b"/")]
        if not found:
            raise MissingPathError("v%d has no file or folder '%s'" % (number, shown(path)))
        above = path
        while above:
            if above in entries:
                wanted[above] = entries[above]
            above = above.rpartition(b"/")[0]
        wanted.update({each: entries[each] for each in found})
    return wanted


def _restore(
    backups: str,
    version: Manifest,
    entries: Dict[bytes, Entry],
    target: str,
    *,
    state_folder: str = "",
    on_progress: OnProgress = None,
    acls: bool = True,
) -> None:
    target = os.path.abspath(target)
    if os.path.lexists(target):
        raise BackupError("%s exists: a restore needs a new folder; move it away first" % shown(target))
    fresh = ""
    try:
        above = os.path.dirname(target)
        os.makedirs(above, exist_ok=True)
        sweep(above)
        fresh = os.path.join(above, ".%s.restoring" % claims.own())
        os.mkdir(fresh, 0o700)
        used = {entry.pack for entry in entries.values() if entry.pack}
        progress = Progress(on_progress, "restore", sum(version.packs[name].size for name in used))
        rebuild = Rebuild(backups, version.packs, entries, os.fsencode(fresh), progress, acls=acls)
        found = rebuild.run()
        progress.end()
        if state_folder:
            wait_for_clock(entry.key for entry in found.values())
            now = time.time()
            settled = {path: entry._replace(key=sure(entry.key, now)) for path, entry in found.items()}
            about = version.header["version"]
            state.start(state_folder, os.stat(fresh).st_ino, state.Known(about["number"], about["id"], settled))
        os.rename(fresh, target)
        fresh = ""
    except DamagedError as error:
        checking.note(backups, {error.name: True})
        raise
    except OSError as error:
        raise from_os(error, "restore to %s" % shown(target)) from None
    finally:
        if fresh:
            remove_tree(fresh)


def sweep(folder: str) -> None:
    """Remove what restores of this user left that were killed."""
    for name in os.listdir(folder):
        if name.startswith(".") and name.endswith(".restoring") and claims.dead(name[1:].partition(".")[0]):
            path = os.path.join(folder, name)
            try:
                mine = os.lstat(path).st_uid == os.geteuid()
            except OSError:
                continue
            if mine:
                remove_tree(path)


def remove_tree(path: str) -> None:
    """Remove a folder that a restore made, with read-only folders in it."""
    for place, folders, _ in os.walk(path):
        for name in folders:
            below = os.path.join(place, name)
            if not os.path.islink(below):
                os.chmod(below, 0o700)
    shutil.rmtree(path, ignore_errors=True)
