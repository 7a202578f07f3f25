"""Decides what a save has to do: which entries differ, which contents are already in a pack, which have to be saved."""

import stat
from typing import Dict, Iterable, List, NamedTuple, Set, Tuple

from yurt.node.backup.entries import MODE, SIZE, Entry, Key, member
from yurt.node.backup.manifest import Pack
from yurt.node.backup.scan import Scan

MOST_PACKS = 30
FEWER_PACKS = 15
Place = Tuple[str, bytes]


class Plan(NamedTuple):
    """What differs from the last save."""

    changed: List[bytes]
    """Paths whose entries are new, or have to be written again."""
    gone: List[bytes]
    reused: Dict[bytes, Place]
    """Regular files among the changed paths whose content is in a pack: its name, and the name in it."""
    saved: Dict[bytes, List[bytes]]
    """Regular files to save, each with all changed paths of the same inode."""


def differing(scanned: Scan, known: Dict[bytes, Entry]) -> Tuple[List[bytes], List[bytes]]:
    """Return the paths that are new or changed, and those that are gone."""
    groups = scanned.groups
    changed = []
    for path, key in scanned.keys.items():
        entry = known.get(path)
        if entry is None or entry.key != key:
            changed.append(path)
    if groups or any(entry.group for entry in known.values()):
        seen = set(changed)
        for path, entry in known.items():
            if entry.group != groups.get(path, b"") and path in scanned.keys and path not in seen:
                changed.append(path)
    gone = [path for path in known if path not in scanned.keys]
    if scanned.unread:
        unread = tuple(scanned.unread)
        gone = [path for path in gone if not path.startswith(unread)]
    return changed, gone


def plan(scanned: Scan, known: Dict[bytes, Entry], changed: List[bytes], gone: List[bytes], unwanted: Set[str]) -> Plan:
    """Return what to do. Files in `unwanted` packs are saved again, whether or not they changed."""
    every = list(changed)
    if unwanted:
        seen = set(changed)
        every += [
            path
            for path, entry in known.items()
            if entry.pack in unwanted and path not in seen and path in scanned.keys
        ]
    elsewhere = _places(known, gone, unwanted)
    if any(path in scanned.groups for path in every):
        elsewhere.update(_places(known, scanned.groups, unwanted))
    reused: Dict[bytes, Place] = {}
    saved: Dict[bytes, List[bytes]] = {}
    for path in every:
        key = scanned.keys[path]
        if not stat.S_ISREG(key[MODE]):
            continue
        entry = known.get(path)
        if entry is not None and entry.key == key and entry.pack and entry.pack not in unwanted:
            reused[path] = (entry.pack, member(path, entry))
        elif key in elsewhere:
            reused[path] = elsewhere[key]
        else:
            saved.setdefault(scanned.groups.get(path, path), []).append(path)
    return Plan(every, gone, reused, saved)


def _places(known: Dict[bytes, Entry], paths: Iterable[bytes], unwanted: Set[str]) -> Dict[Key, Place]:
    """Return where the contents of these paths are, by key: the same inode with the same times has the same content."""
    found = {}
    for path in paths:
        entry = known.get(path)
        if entry is not None and entry.pack and entry.pack not in unwanted:
            found[entry.key] = (entry.pack, member(path, entry))
    return found


def unwanted_packs(entries: Dict[bytes, Entry], packs: Dict[str, Pack], missing: Set[str]) -> Set[str]:
    """Return the packs whose files should be saved again.

    These are missing packs, packs of which less than half is still in use, and the least used ones if there are many.
    """
    live = dict.fromkeys(packs, 0)
    linked = set()
    for path, entry in entries.items():
        if entry.pack:
            if entry.group:
                place = (entry.pack, member(path, entry))
                if place in linked:
                    continue
                linked.add(place)
            live[entry.pack] = live.get(entry.pack, 0) + entry.key[SIZE]
    used = {entry.pack for entry in entries.values() if entry.pack}
    unwanted = {name for name in used if name in missing or name not in packs or live[name] * 2 < packs[name].content}
    kept = sorted(used - unwanted, key=lambda name: live[name])
    if len(kept) > MOST_PACKS:
        unwanted.update(kept[: len(kept) - FEWER_PACKS])
    return unwanted
