"""The versions of a workspace: what a backups folder on a shared disk contains. Pure values."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from yurt.model.site_words import MALFORMED, plausible, whole

_FILE = re.compile(r"[pi][A-Za-z0-9][A-Za-z0-9._-]*")


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """One complete backup of a workspace."""

    number: int
    """12 is shown as v12."""
    time: float
    """When it was made, by the clock of the node."""
    reason: str = ""
    """Why it was made: first, interval, asked, down, limit, stopped and so on."""
    host: str = ""
    """The node that made it."""
    run: str = ""
    parent: int = 0
    """The version it was made from; 0 for none."""
    fork: bool = False
    """Whether another node had made a version since its parent, so that this one is beside the others."""
    files: int = 0
    size: int = 0
    """Bytes of the workspace."""
    new_files: int = 0
    """Files that changed since its parent."""
    new_size: int = 0
    """Bytes that it added to the backups."""
    seconds: float = 0.0
    verified: bool = False
    """Whether what was written was read back and compared."""
    note: str = ""
    """What to know about it."""
    damaged: bool = False
    """Whether a file that it needs is missing or damaged, so that it cannot be restored completely."""


class _Header(msgspec.Struct, frozen=True):
    """The first line of a version file."""

    version: Version
    index: str
    packs: list[list[Any]]
    """The name of each pack comes first, then its size."""


class _Checked(msgspec.Struct, frozen=True):
    """What the dev nodes found when they read old packs again."""

    damaged: dict[str, float] = {}


class Workspace(msgspec.Struct, frozen=True):
    """A backups folder: its versions, oldest first, who writes to it, and its size on the disk."""

    versions: list[Version] = []
    holder: str = ""
    """The content of the file in which a dev node says that it uses the workspace; empty if there is none."""
    size: int = 0
    files: dict[int, list[str]] = {}
    """The files that each version needs, the version file last."""
    sizes: dict[str, int] = {}
    """The size of each file."""
    damaged: frozenset[str] = frozenset()
    """The files that a dev node found damaged."""

    @property
    def newest(self) -> Version | None:
        """The newest version that is not a fork."""
        return next((each for each in reversed(self.versions) if not each.fork), None)

    def whole(self, *, without: str = "") -> Version | None:
        """Return the newest version that is not a fork and not known to be damaged. `without`: a damaged file."""
        found = (each for each in reversed(self.versions) if without not in self.files[each.number])
        return next((each for each in found if not each.fork and not each.damaged), None)


def read(text: str) -> list[Workspace]:
    """Return the backups folders in the output of workspaces.sh. Lines of an unknown form are left out."""
    folders: list[list[str]] = []
    for line in text.splitlines():
        if line == "folder":
            folders.append([])
        elif folders:
            folders[-1].append(line)
    return [_workspace(lines) for lines in folders]


def _workspace(lines: list[str]) -> Workspace:
    found = Workspace()
    for line in sorted(lines, key=lambda each: each.startswith("version ")):  # last, as they need the sizes of files
        word, _, rest = line.partition(" ")
        found = _with(found, word, rest)
    return msgspec.structs.replace(found, versions=sorted(found.versions, key=lambda version: version.number))


def _with(before: Workspace, word: str, rest: str) -> Workspace:
    if word == "holder":
        return msgspec.structs.replace(before, holder=rest)
    try:
        if word == "size":
            return msgspec.structs.replace(before, size=whole(rest) * 1024)
        if word == "file" and len(words := rest.split()) == 9:
            return msgspec.structs.replace(before, sizes={**before.sizes, words[8]: whole(words[4])})
        if word == "checked":
            damaged = frozenset(msgspec.json.decode(rest.encode(), type=_Checked).damaged)
            return msgspec.structs.replace(before, damaged=damaged)
        if word == "version":
            name, _, head = rest.partition(" ")
            return _with_version(before, name, msgspec.json.decode(head.encode(), type=_Header))
    except MALFORMED:
        pass
    return before


def _with_version(before: Workspace, name: str, header: _Header) -> Workspace:
    """Return a workspace with one more version, which is damaged if a file that it needs is."""
    version, sizes = header.version, {str(pack[0]): pack[1:2] for pack in header.packs if pack}
    needed = [*sizes, header.index]
    if name != f"v{version.number}" or plausible(version) is None or not all(_FILE.fullmatch(each) for each in needed):
        return before
    lost = [each for each in needed if before.sizes and each not in before.sizes]
    lost += [each for each, size in sizes.items() if each in before.sizes and size != [before.sizes[each]]]
    damaged = bool(lost) or not before.damaged.isdisjoint(needed)
    return msgspec.structs.replace(
        before,
        versions=[*before.versions, msgspec.structs.replace(version, damaged=damaged)],
        files={**before.files, version.number: [*needed, name]},
    )
