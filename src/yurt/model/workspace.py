"""The versions of a workspace: what a backups folder on a shared disk contains. Pure values."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from yurt.model.site_words import MALFORMED

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


class _Header(msgspec.Struct, frozen=True):
    """The first line of a version file."""

    version: Version
    index: str
    packs: list[list[Any]]
    """The name of each pack comes first."""


class Workspace(msgspec.Struct, frozen=True):
    """A backups folder: its versions, oldest first, who writes to it, and its size on the disk."""

    versions: list[Version] = []
    holder: str = ""
    """The content of the file in which a dev node says that it uses the workspace; empty if there is none."""
    size: int = 0
    files: dict[int, list[str]] = {}
    """The files that each version needs, the version file last."""

    @property
    def newest(self) -> Version | None:
        """The newest version that is not a fork."""
        return next((each for each in reversed(self.versions) if not each.fork), None)


def read(text: str) -> list[Workspace]:
    """Return the backups folders in the output of workspaces.sh. Lines of an unknown form are left out."""
    found: list[Workspace] = []
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "folder":
            found.append(Workspace())
        elif found:
            found[-1] = _with(found[-1], word, rest)
    return [
        msgspec.structs.replace(each, versions=sorted(each.versions, key=lambda version: version.number))
        for each in found
    ]


def _with(before: Workspace, word: str, rest: str) -> Workspace:
    if word == "holder":
        return msgspec.structs.replace(before, holder=rest)
    if word == "size" and rest.isdigit():
        return msgspec.structs.replace(before, size=int(rest) * 1024)
    if word == "version":
        name, _, head = rest.partition(" ")
        try:
            header = msgspec.json.decode(head.encode(), type=_Header)
        except MALFORMED:
            return before
        version = header.version
        needed = [*(str(pack[0]) for pack in header.packs if pack), header.index]
        if name == f"v{version.number}" and all(_FILE.fullmatch(each) for each in needed):
            files = {**before.files, version.number: [*needed, name]}
            return msgspec.structs.replace(before, versions=[*before.versions, version], files=files)
    return before
