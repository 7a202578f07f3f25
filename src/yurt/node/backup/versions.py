"""Lists the versions of a backups folder."""

import os
import re
from typing import Iterable, List, NamedTuple, Optional

from yurt.node.backup import manifest
from yurt.node.backup.errors import BackupError, shown

NAME = re.compile(r"v([1-9]\d*)")


class Version(NamedTuple):
    """One complete backup of a workspace."""

    number: int
    time: float
    reason: str
    host: str
    run: str
    parent: int
    fork: bool
    files: int
    size: int
    """Bytes of the files in the workspace."""
    new_files: int
    new_size: int
    """Bytes of the packs that this version added."""
    seconds: float
    verified: bool
    note: str
    id: str = ""
    """A random name: two versions of the same number in the life of a folder differ in it."""


def versions(backups_folder: str) -> List[Version]:
    """Return all complete versions, oldest first; reads only their first lines. Skips damaged files."""
    found = []
    for number in numbers(names_in(backups_folder)):
        version = read_version(backups_folder, number)
        if version is not None:
            found.append(version)
    return found


def unreadable(backups_folder: str) -> List[int]:
    """Return the numbers of the version files whose first line is damaged, so that `versions` does not have them."""
    listed = {version.number for version in versions(backups_folder)}
    return [number for number in numbers(names_in(backups_folder)) if number not in listed]


def newest(backups_folder: str) -> Optional[Version]:
    """Return the newest version that is not a fork; None if there is none."""
    return newest_of(backups_folder, names_in(backups_folder))


def newest_of(folder: str, names: Iterable[str]) -> Optional[Version]:
    for number in reversed(numbers(names)):
        version = read_version(folder, number)
        if version is not None and not version.fork:
            return version
    return None


def read_version(folder: str, number: int) -> Optional[Version]:
    """Return one version; None if it does not exist or its first line is damaged."""
    try:
        header = manifest.read_header(folder, number)
    except BackupError:
        return None
    return None if header is None else Version(**header["version"])


def room(folder: str, number: int) -> int:
    """Return the bytes that a version needs on a disk; 0 if that is unknown, as for versions of an earlier yurt."""
    header = manifest.read_header(folder, number)
    return 0 if header is None else int(header.get("room", 0))


def needs(folder: str, number: int) -> List[str]:
    """Return the files in the folder that a version needs besides its own. BackupError: there is no such version."""
    header = manifest.read_header(folder, number)
    if header is None:
        raise BackupError("there is no version v%d in %s; list them with `yurt dev backups`" % (number, shown(folder)))
    return [*(pack[0] for pack in header["packs"]), header["index"]]


def numbers(names: Iterable[str]) -> List[int]:
    """Return the numbers of the version files among these names, in order."""
    return sorted(int(found.group(1)) for found in map(NAME.fullmatch, names) if found)


def names_in(folder: str) -> List[str]:
    """Return the names in a backups folder; none if it does not exist."""
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise BackupError("cannot list the backups folder %s: %s" % (folder, error.strerror)) from None
