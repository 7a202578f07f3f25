"""Checks a version: reads all its packs back."""

import stat
from typing import Dict, Set

from yurt.node.backup import manifest
from yurt.node.backup.entries import MODE, SIZE, member
from yurt.node.backup.errors import BackupError, shown
from yurt.node.backup.pack_read import list_pack
from yurt.node.backup.progress import OnProgress, Progress


def verify(backups: str, number: int, on_progress: OnProgress = None) -> None:
    """Read everything that a version needs. BackupError names the first file that is damaged or missing."""
    version = manifest.read(backups, number)
    wanted: Dict[str, Dict[bytes, int]] = {}
    for path, entry in version.entries.items():
        if stat.S_ISREG(entry.key[MODE]):
            wanted.setdefault(entry.pack, {})[member(path, entry)] = entry.key[SIZE]
    packs: Set[str] = set(wanted)
    if not packs <= set(version.packs):
        raise manifest.damaged("v%d" % number)
    progress = Progress(on_progress, "verify", sum(version.packs[name].size for name in packs))
    for name in sorted(packs):
        _, found = list_pack(backups, version.packs[name], progress)
        for path, size in wanted[name].items():
            if path not in found or found[path].size != size:
                raise BackupError("version v%d is damaged: the pack %s lacks %s" % (number, name, shown(path)))
    progress.end()
