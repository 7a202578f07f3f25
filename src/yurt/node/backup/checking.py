"""Reads backups again, whole versions or a part with each save, and notes for all nodes which files are damaged."""

import errno
import json
import os
import stat
import time
import zlib
from bisect import bisect_left, bisect_right
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple

from yurt.node.backup import manifest, storage
from yurt.node.backup.entries import MODE, SIZE, member
from yurt.node.backup.errors import BackupError, DamagedError, shown
from yurt.node.backup.manifest import Pack
from yurt.node.backup.pack_read import list_pack
from yurt.node.backup.pipes import Pieces
from yurt.node.backup.progress import OnProgress, Progress
from yurt.node.backup.versions import Version, names_in, numbers, versions

FILE = "checked"
"""The file in a backups folder with what was found. It is only a cache: what it lacks is found again."""

MOST, SECONDS = 200_000_000, 30.0
"""How many bytes of old packs one save reads again, and for how long: a slow disk must not keep it from its work."""

STEP = 8 << 20
"""Bytes between two looks at these limits."""

LOST = (errno.ENOENT, errno.EIO)
"""Errors of a file whose content is gone; others may pass."""


class Checked(NamedTuple):
    """What is known of the files in a backups folder."""

    damaged: Dict[str, float]
    """Packs and indexes that were not as they were written, and when that was found."""
    pack: str = ""
    """The pack that was read last in turn."""
    at: int = 0
    """How many bytes of it; 0 if all."""
    sum: int = 0
    """The CRC-32 of these bytes."""


def known(backups: str) -> Checked:
    """Return what was found so far; nothing if that cannot be read."""
    try:
        found: Dict[str, Any] = json.loads((storage.read(os.path.join(backups, FILE)) or b"").decode("ascii"))
        damaged = {str(name): float(when) for name, when in found["damaged"].items()}
        return Checked(damaged, str(found["pack"]), int(found["at"]), int(found["sum"]))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return Checked({})


def note(backups: str, found: Mapping[str, bool], turn: Optional[Tuple[str, int, int]] = None) -> None:
    """Note for some files whether they are damaged, and how far packs were read in turn. Drops files that are gone."""
    before = known(backups)
    damaged = {name: when for name, when in before.damaged.items() if found.get(name, True)}
    damaged.update((name, time.time()) for name, is_damaged in found.items() if is_damaged and name not in damaged)
    damaged = {name: when for name, when in damaged.items() if os.path.lexists(os.path.join(backups, name))}
    now = Checked(damaged, *(turn or (before.pack, before.at, before.sum)))
    if now == before:
        return
    temporary = storage.aside(backups, FILE)
    try:
        storage.write(temporary, json.dumps(now._asdict()).encode("ascii") + b"\n")
        storage.place(temporary, os.path.join(backups, FILE))
    except OSError:
        storage.remove(temporary)  # the disk is full, or not ours to write: it is found again


def verify(backups: str, number: int, on_progress: OnProgress = None) -> None:
    """Read everything that a version needs. BackupError names the first file that is damaged or missing."""
    version = manifest.read(backups, number)
    wanted: Dict[str, Dict[bytes, int]] = {}
    for path, entry in version.entries.items():
        if stat.S_ISREG(entry.key[MODE]):
            wanted.setdefault(entry.pack, {})[member(path, entry)] = entry.key[SIZE]
    if not set(wanted) <= set(version.packs):
        raise DamagedError("v%d" % number)
    progress = Progress(on_progress, "verify", sum(version.packs[name].size for name in wanted))
    wrong: Dict[str, BackupError] = {}
    for name in sorted(wanted):
        try:
            _, found = list_pack(backups, version.packs[name], progress)
        except DamagedError as error:
            wrong[name] = error
            continue
        for path, size in wanted[name].items():
            if path not in found or found[path].size != size:
                raise BackupError("version v%d is damaged: the pack %s lacks %s" % (number, name, shown(path)))
    note(backups, {name: name in wrong for name in wanted})
    if wrong:
        raise wrong[min(wrong)]
    progress.end()


def check(backups: str, on_progress: OnProgress = None) -> List[int]:
    """Read all files that all versions need, and note which are damaged; return the versions that are not complete."""
    every = numbers(names_in(backups))
    sizes = {pack.name: pack.size for number in every for pack in _packs(backups, number)}
    progress = Progress(on_progress, "check", sum(sizes.values()))
    found: Dict[str, bool] = {}
    wrong = [number for number in every if not _is_whole(backups, number, found, progress)]
    note(backups, found)
    progress.end()
    return wrong


def newest_whole(backups: str, on_progress: OnProgress = None) -> Optional[Version]:
    """Return the newest version that is not a fork and restores, after reading all that it needs; None if none does."""
    found: Dict[str, bool] = {}
    for version in reversed(versions(backups)):
        total = sum(pack.size for pack in _packs(backups, version.number) if pack.name not in found)
        progress = Progress(on_progress, "check v%d" % version.number, total)
        if not version.fork and _is_whole(backups, version.number, found, progress):
            return version
    return None


def read_in_turn(backups: str, packs: Mapping[str, Pack], stop: Callable[[], bool]) -> None:
    """Read some of these packs again, from where the last call ended, and note which are damaged."""
    before, names = known(backups), sorted(packs)
    found: Dict[str, bool] = {}
    turn, left, until = (before.pack, before.at, before.sum), MOST, time.monotonic() + SECONDS
    first = bisect_left(names, before.pack) if before.at else bisect_right(names, before.pack)
    for name in names[first:] + names[:first]:
        at, checksum = (before.at, before.sum) if before.at and name == before.pack else (0, 0)
        reading = _Reading(os.path.join(backups, name), at, checksum)
        try:
            while not reading.ended and left > 0 and time.monotonic() < until and not stop():
                left -= reading.step()
        except OSError as error:
            if error.errno not in LOST:
                continue  # it may be readable again later
            reading.ended = True
        if not reading.ended:
            turn = (name, reading.at, reading.sum) if reading.at else turn
            break
        found[name] = not reading.agrees(packs[name])
        turn = (name, 0, 0)
    note(backups, found, turn)


class _Reading:
    """A file that is read piece by piece while its checksum is computed."""

    def __init__(self, path: str, at: int = 0, checksum: int = 0) -> None:
        self.path, self.at, self.sum, self.ended = path, at, checksum, False

    def step(self) -> int:
        """Read up to STEP bytes and return how many; set `ended` at the end of the file. Raises OSError."""
        began = self.at
        with open(self.path, "rb", 0) as stream:
            stream.seek(began)
            pieces = Pieces(stream.fileno())
            while self.at - began < STEP and not self.ended:
                piece = pieces.read()
                self.sum, self.at, self.ended = zlib.crc32(piece, self.sum), self.at + len(piece), not piece
        return self.at - began

    def agrees(self, pack: Pack) -> bool:
        return self.at == pack.size and "%08x" % self.sum == pack.sum


def _is_whole(backups: str, number: int, found: Dict[str, bool], progress: Progress) -> bool:
    """Return whether all files of a version are as they were written. `found` has the files that were read before."""
    packs = _packs(backups, number)
    for pack in packs:
        if pack.name not in found:
            found[pack.name] = not _is_sound(backups, pack, progress)
    name = "v%d" % number
    if not manifest.is_sound(backups, name):
        return not os.path.lexists(os.path.join(backups, name))  # or it was dropped
    header = manifest.read_header(backups, number)
    index = "" if header is None else header["index"]
    if index and index not in found:
        found[index] = not manifest.is_sound(backups, index)
    return not any(found[each] for each in [index, *(pack.name for pack in packs)] if each)


def _is_sound(backups: str, pack: Pack, progress: Progress) -> bool:
    reading = _Reading(os.path.join(backups, pack.name))
    try:
        while not reading.ended:
            progress.add(reading.step())
    except OSError as error:
        if error.errno not in LOST:
            raise
        return False
    return reading.agrees(pack)


def _packs(backups: str, number: int) -> List[Pack]:
    """Return the packs that a version needs; none if its first line is damaged."""
    try:
        header = manifest.read_header(backups, number)
    except DamagedError:
        header = None
    return [] if header is None else [Pack(*each) for each in header["packs"]]
