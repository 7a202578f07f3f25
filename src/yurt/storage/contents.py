"""What is at places of a context, and its removal: one request each."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from yurt.errors import NotFoundError, RefusedError
from yurt.model.site_words import moment, one_each, whole
from yurt.storage.spots import Spot
from yurt.transport.base import refusal

SCRIPT = Path(__file__).parent / "look.sh"

KINDS = {"d": "folder", "f": "file", "l": "link", "n": "missing"}

HOUR = 3600.0
"""Seconds that it may take to list or remove many files."""


class DataEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A file or folder on a context."""

    name: str
    kind: str
    """folder, file, link or other."""
    files: int = 0
    """Number of files and links in a folder; 1 for anything else."""
    size: int = 0
    """Bytes of all its files."""
    modified: float = 0
    """When it, or something in it, was modified last: seconds since 1970."""


def listed(place: Spot) -> tuple[str, list[DataEntry]]:
    """Return the kind of a place, and what a folder contains, sorted by name. NotFoundError if there is nothing."""
    first, *entries = _asked(place, "list", [place.path], b"")
    if first.kind == "missing":
        raise missing(place)
    names = {each.name for each in entries}
    lengths = {len(os.fsencode(each)) for each in names}
    shown = [each for each in entries if not _is_digest(each.name, names, lengths)]
    return first.kind, sorted(shown, key=lambda each: each.name)


def _is_digest(name: str, names: Collection[str], lengths: Collection[int]) -> bool:
    """Whether a file is the digest of an archive beside it: `.NAME.yurt-pack`, or see pack.sh for a long name."""
    if not name.startswith(".") or not name.endswith(".yurt-pack"):
        return False
    long = re.fullmatch(r"\.yurt-[0-9]+-([0-9]{1,4})\.yurt-pack", name)
    return name[1:].removesuffix(".yurt-pack") in names or (long is not None and int(long[1]) in lengths)


def measured(places: Sequence[Spot]) -> list[DataEntry]:
    """Return what is at places of one context. RefusedError for one that must not be removed."""
    return _checked(places, "measure")


def remove(places: Sequence[Spot], files: Mapping[str, int]) -> None:
    """Remove what is at places of one context; links are not followed. Safe to repeat.

    `files`: how many there are, by place. RefusedError names what remains, if not all could be removed.
    """
    _checked(places, "remove", files)


def missing(place: Spot) -> NotFoundError:
    return NotFoundError(
        f"{place} does not exist",
        code="not-found",
        hint=f"`yurt data ls {place.context.name}:{place.path.rpartition('/')[0] or '/'}` lists what is there",
    )


def _checked(places: Sequence[Spot], what: str, files: Mapping[str, int] | None = None) -> list[DataEntry]:
    kept = [f"keep {each}" for each in places[0].kept_folders()] + [f"own {each}" for each in places[0].own_folders()]
    found = _asked(
        places[0], what, [each.path for each in places], "".join(f"{line}\n" for line in kept).encode(), files
    )
    if found and found[-1].kind == "refused":
        folder = found[-1].name
        own = folder in places[0].own_folders()
        raise RefusedError(
            f"{places[0].context.name}: nothing was removed: "
            + (f"a place is in yurt's own folder {folder}, or contains it" if own else f"a place contains {folder}"),
            code="site-refused",
            hint="remove runs with `yurt prune`" if own else "name something below it",
        )
    with places[0].host.reading():
        return one_each(found, places)


def _asked(
    place: Spot, what: str, paths: Sequence[str], stdin: bytes, known_files: Mapping[str, int] | None = None
) -> list[DataEntry]:
    answer = place.host.run(SCRIPT.read_text(), what, *paths, stdin=stdin, timeout=HOUR)
    if answer.code and what == "list":
        raise refusal(place.host.name, f"cannot read {place.path}", answer.errors)
    if answer.code:
        raise refusal(place.host.name, f"cannot {'remove' if what == 'remove' else 'read'} the files", answer.errors)
    with place.host.reading():
        found = [_entry(each) for each in answer.out.decode(errors="surrogateescape").split("\0")[:-1]]
        if not found and paths:
            raise ValueError("it is empty")
    left = next((each for each in found if each.kind == "left"), None)
    if left is not None:
        before = (known_files or {}).get(f"{place.context.name}:{left.name}", 0)
        raise _remaining(place, left.name, left.files, answer.errors, part=left.files < before)
    return found


def _entry(record: str) -> DataEntry:
    """Return what a record of look.sh says. ValueError if it is none."""
    kind, files, size, modified, name = record.split(" ", 4)
    known = KINDS.get(kind, kind if kind in ("refused", "left") else "other")
    return DataEntry(name=name, kind=known, files=whole(files), size=whole(size), modified=moment(modified or "0"))


def _remaining(place: Spot, path: str, files: int, errors: str, *, part: bool) -> RefusedError:
    lines = [line for line in errors.splitlines() if line.startswith("rm: ")] or [errors.strip() or "no error message"]
    reason = re.sub(r"^rm: (?:cannot remove )?'?(.*?)'?: ([^:]*)$", r"\1: \2", lines[0])
    number = f"{files:,} file{' remains' if files == 1 else 's remain'}"
    return RefusedError(
        f"{place.context.name}: {'removed a part of' if part else 'could not remove'} {path}; {number}: {reason}",
        code="site-refused",
        hint=f"`yurt data ls {place.context.name}:{path}` lists what remains",
    )
