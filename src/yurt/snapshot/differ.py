"""Compares two snapshots with git; they may be in different stores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from yurt.errors import RefusedError
from yurt.snapshot import git
from yurt.snapshot.collect import shown

Kind = Literal["added", "removed", "changed", "renamed"]
KINDS: dict[bytes, Kind] = {b"A": "added", b"D": "removed", b"R": "renamed"}

# The plumbing command ignores the user's diff settings.
DIFFER = ("diff-tree", "-r", "--find-renames", "--no-ext-diff", "--no-textconv")


class Change(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file that differs between the two snapshots."""

    path: str
    kind: Kind
    before: str = ""
    """Old path, if it was renamed."""
    lines_added: int | None = None
    """Number of added lines; null for a binary file."""
    lines_removed: int | None = None
    mode: str = ""
    """Old and new mode, if it changed, such as "644 to 755"."""


class Pair:
    """Two trees, each with its store."""

    def __init__(self, left: tuple[Path, str], right: tuple[Path, str]) -> None:
        (self._store, self._left), (self._other, self._right) = left, right

    def changes(self) -> list[Change]:
        """Return the files that differ, ordered by path."""
        output = self._git("-z", "--raw", "--numstat").split(b"\0")
        fields = iter(output[:-1])
        kinds: dict[bytes, tuple[Kind, bytes, str]] = {}
        counts: dict[bytes, tuple[int | None, int | None]] = {}
        for field in fields:
            if field.startswith(b":"):
                name, each = _raw(field, fields)
                kinds[name] = each
            else:
                added, removed, name = field.split(b"\t", 2)
                if not name:
                    next(fields)
                    name = next(fields)
                counts[name] = (_count(added), _count(removed))
        return [
            Change(
                path=shown(name),
                kind=kind,
                before=shown(before),
                lines_added=counts.get(name, (None, None))[0],
                lines_removed=counts.get(name, (None, None))[1],
                mode=mode,
            )
            for name, (kind, before, mode) in kinds.items()
        ]

    def patch(self, *, colour: bool = False) -> bytes:
        """Return the patch as `git diff` prints it, as raw bytes."""
        return self._git("--patch", "--color=always" if colour else "--no-color")

    def _git(self, *options: str) -> bytes:
        also = None if self._other == self._store else self._other
        return git.call([*DIFFER, *options, self._left, self._right], folder=self._store, own=self._store, also=also)


def is_here(store: Path, tree: str) -> bool:
    """Return whether a store contains a snapshot."""
    if not store.is_dir():
        return False
    try:
        git.call(["cat-file", "-e", f"{tree}^{{tree}}"], folder=store, own=store)
    except RefusedError:
        return False
    return True


def _raw(field: bytes, fields: Iterator[bytes]) -> tuple[bytes, tuple[Kind, bytes, str]]:
    """Parse a field such as `:100644 100755 1234… 5678… R90` and the names that follow it."""
    old, new, _old_id, _new_id, status = field[1:].split(b" ")
    kind, before, name = KINDS.get(status[:1], "changed"), b"", next(fields)
    if kind == "renamed":
        before, name = name, next(fields)
    changed = kind in ("changed", "renamed") and old != new
    return name, (kind, before, f"{_mode(old)} to {_mode(new)}" if changed else "")


def _mode(mode: bytes) -> str:
    return "a link" if mode.startswith(b"12") else mode[-3:].decode()


def _count(field: bytes) -> int | None:
    return None if field == b"-" else int(field)
