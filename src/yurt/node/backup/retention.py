"""Drops old versions by a rule, then the packs and indexes that no version needs."""

import os
import time
from typing import Dict, Iterable, List, Set

from yurt.node.backup import checking, manifest, storage
from yurt.node.backup.errors import DamagedError, from_os, shown
from yurt.node.backup.keeping import kept
from yurt.node.backup.versions import Version, needs, numbers, versions

DAY = 86400
FORK_DAYS = 30
ABANDONED = 2 * DAY
"""Seconds after which a temporary file of another machine counts as left behind."""

DOOMED = ".doomed-"


def retain(backups: str, last: int = 10, days: int = 7, weeks: int = 4, limit: int = 0) -> List[int]:
    """Keep the last versions, one for each of so many days and one for each of so many weeks; return those dropped.

    While the folder has more than `limit` bytes (0: no limit), drops more, oldest first. Never drops the newest
    version, nor the newest without known damage, nor a fork younger than 30 days. Safe to repeat after a kill at any
    moment.
    """
    try:
        dropped = []
        held = versions(backups)
        safe = _safe(backups, held)
        wanted = safe | _wanted(held, last, days, weeks)
        for version in held:
            if version.number not in wanted:
                _drop(backups, version.number)
                dropped.append(version.number)
        _collect(backups)
        for version in held:
            if limit and held_size(backups) > limit and version.number in wanted and version.number not in safe:
                _drop(backups, version.number)
                dropped.append(version.number)
                _collect(backups)
        return sorted(dropped)
    except OSError as error:
        raise from_os(error, "drop old versions in %s" % shown(backups)) from None


def held_size(backups: str) -> int:
    """Return the bytes of all files in a backups folder."""
    total = 0
    for place, _, names in os.walk(backups):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_size
            except FileNotFoundError:
                pass
    return total


def _safe(backups: str, held: List[Version]) -> Set[int]:
    """Return the versions that are never dropped: the newest, the newest without known damage, and young forks."""
    now = time.time()
    found = {version.number for version in held if version.fork and now - version.time < FORK_DAYS * DAY}
    found.update(version.number for version in held[-1:])
    line = [version.number for version in held if not version.fork]
    found.update(line[-1:])
    damaged = checking.known(backups).damaged
    if damaged:
        found.update([number for number in line if not any(name in damaged for name in needs(backups, number))][-1:])
    return found


def _wanted(held: List[Version], last: int, days: int, weeks: int) -> Set[int]:
    """Return the versions to keep by the rule: the newest of each day and week that has any."""
    line = [version for version in held if not version.fork]
    found = {version.number for version in line[-last:] if last}
    for length, count in ((DAY, days), (7 * DAY, weeks)):
        newest: Dict[int, int] = {}
        for version in line:
            newest[int(version.time // length)] = version.number
        found.update(newest[period] for period in sorted(newest)[-count:] if count)
    return found


def _drop(backups: str, number: int) -> None:
    """Remove a version file in one step: a folder that stands for one is renamed first."""
    temporary = storage.aside(backups, "dropped")
    try:
        os.rename(os.path.join(backups, "v%d" % number), temporary)
    except FileNotFoundError:
        return
    storage.remove(temporary)


def _collect(backups: str) -> None:
    """Remove packs and indexes that no version and no running save needs.

    They are first hidden under another name. A save that began before that either misses them and saves their files
    again, or has announced that it needs them: then they get their names back.
    """
    names = storage.sweep(backups)
    _remove_abandoned(backups, names)
    for name in names:
        if name.startswith(DOOMED):
            _rename(backups, name, name[len(DOOMED) :])
    names = os.listdir(backups)
    needed = _needed(backups, names)
    doomed = [name for name in names if name[:1] in ("p", "i") and "-" in name and name not in needed]
    for name in doomed:
        _rename(backups, name, DOOMED + name)
    if doomed:
        needed = _needed(backups, os.listdir(backups))
    for name in doomed:
        if name in needed:
            _rename(backups, DOOMED + name, name)
        else:
            storage.remove(os.path.join(backups, DOOMED + name))


def _needed(backups: str, names: List[str]) -> Set[str]:
    """Return the packs and indexes that versions and running saves need. BackupError if a version cannot be read.

    One that is damaged does not count: it cannot be restored, and would keep everything for ever.
    """
    found = kept(backups, names)
    for number in numbers(names):
        try:
            header = manifest.read_header(backups, number)
        except DamagedError:
            continue
        if header is not None:
            found.add(header["index"])
            found.update(pack[0] for pack in header["packs"])
    return found


def _remove_abandoned(backups: str, names: Iterable[str]) -> None:
    for name in names:
        if name.startswith(".yurt-"):
            path = os.path.join(backups, name)
            try:
                if time.time() - os.lstat(path).st_mtime > ABANDONED:
                    storage.remove(path)
            except FileNotFoundError:
                pass


def _rename(backups: str, old: str, new: str) -> None:
    try:
        os.rename(os.path.join(backups, old), os.path.join(backups, new))
    except FileNotFoundError:
        pass  # another process was faster
