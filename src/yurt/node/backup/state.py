"""What a node knows of its workspace: a journal on its own disk, of which a damaged or foreign one counts as none.

The journal has one line of JSON per save, with a checksum. A line is written before its version is published and
confirmed afterwards, so that a killed save is known to have been published or not.
"""

import hashlib
import json
import os
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from yurt.node.backup import storage
from yurt.node.backup.entries import Entry, raw, text

NAME = "state"

Updates = Dict[bytes, Optional[Entry]]
"""New entries by path; None for a path that is gone."""


class Known(NamedTuple):
    """The version that a workspace was saved as or restored from, with the keys that its files have on this node."""

    base: int
    id: str
    entries: Dict[bytes, Entry]


def start(folder: str, inode: int, known: Known) -> None:
    """Replace the journal by one that holds all of this, for the workspace with this inode."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    temporary = storage.aside(folder, NAME)
    updates: Updates = dict(known.entries)
    content = _line({"workspace": inode}) + _record(known.base, known.id, updates) + _line({"done": known.id})
    storage.write(temporary, content)
    storage.place(temporary, os.path.join(folder, NAME))


def append(folder: str, inode: int, base: int, identity: str, updates: Updates) -> int:
    """Add a save that is about to be published. Returns the length of the journal before, for `undo`."""
    path = os.path.join(folder, NAME)
    if not os.path.exists(path):
        start(folder, inode, Known(0, "", {}))
    return _add(path, _record(base, identity, updates))


def confirm(folder: str, identity: str) -> None:
    """Note that the last save was published."""
    _add(os.path.join(folder, NAME), _line({"done": identity}))


def undo(folder: str, length: int) -> None:
    """Remove the last save, which was not published."""
    os.truncate(os.path.join(folder, NAME), length)


def load(folder: str, inode: int, is_published: Callable[[int, str], bool]) -> Optional[Known]:
    """Return what is known of a workspace; None if there is no journal, a damaged one, or one of another folder."""
    try:
        with open(os.path.join(folder, NAME), "rb") as stream:
            content = stream.read()
    except OSError:
        return None
    records, length = _parse(content)
    if not records or records[0].get("workspace") != inode:
        return None
    last = records[-1]
    if "base" in last and not is_published(last["base"], last["id"]):
        records.pop()
        length = content.rindex(b"\n", 0, length - 1) + 1
    if length != len(content):
        undo(folder, length)
    entries: Dict[bytes, Entry] = {}
    base, identity = 0, ""
    for record in records[1:]:
        if "base" in record:
            base, identity = record["base"], record["id"]
            _apply(entries, record)
    return Known(base, identity, entries)


def size(folder: str) -> int:
    """Return the bytes of the journal."""
    try:
        return os.stat(os.path.join(folder, NAME)).st_size
    except OSError:
        return 0


def _apply(entries: Dict[bytes, Entry], record: Dict[str, Any]) -> None:
    packs: List[str] = record["packs"]
    for each in record["rows"]:
        path = raw(each[0])
        if len(each) == 1:
            entries.pop(path, None)
        else:
            place = each[7]
            entries[path] = Entry(
                (each[1], each[2], each[3], each[4], each[5], each[6]),
                packs[place] if place >= 0 else "",
                raw(each[8]),
                raw(each[9]),
            )


def _record(base: int, identity: str, updates: Updates) -> bytes:
    names: Dict[str, int] = {}
    rows: List[List[Any]] = []
    for path, entry in updates.items():
        if entry is None:
            rows.append([text(path)])
        else:
            place = names.setdefault(entry.pack, len(names)) if entry.pack else -1
            rows.append([text(path), *entry.key, place, text(entry.extra), text(entry.group)])
    return _line({"base": base, "id": identity, "packs": list(names), "rows": rows})


def _line(record: Dict[str, Any]) -> bytes:
    content = json.dumps(record, separators=(",", ":")).encode("ascii")
    return hashlib.sha256(content).hexdigest()[:16].encode("ascii") + b" " + content + b"\n"


def _parse(content: bytes) -> Tuple[List[Dict[str, Any]], int]:
    """Return the records up to the first damaged line, and their length in bytes."""
    records = []
    length = 0
    for line in content.splitlines(keepends=True):
        check, _, rest = line.partition(b" ")
        if not rest.endswith(b"\n") or hashlib.sha256(rest[:-1]).hexdigest()[:16].encode("ascii") != check:
            break
        records.append(json.loads(rest.decode("ascii")))
        length += len(line)
    return records, length


def _add(path: str, content: bytes) -> int:
    number = os.open(path, os.O_WRONLY | os.O_APPEND)
    length = os.fstat(number).st_size
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(number, view) :]
        os.fsync(number)
    except OSError:
        os.ftruncate(number, length)
        raise
    finally:
        os.close(number)
    return length
