"""What the user has agreed to, for each project: package indexes, files to upload, folders to write to, builds here.

A file in the data folder, which no project can change. A project is its folder: a checkout elsewhere is another one.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from yurt.config import paths
from yurt.config.lock import locked
from yurt.errors import Consent


class Trusted(msgspec.Struct, frozen=True):
    """What one project may do."""

    folder: str
    """The folder of the project."""
    addresses: list[str] = []
    """Package indexes and other addresses from which its packages may come."""
    builds: list[str] = []
    """Packages whose build code may run on this machine."""
    files: list[str] = []
    """Files and folders of this machine outside the project that it may upload."""
    writes: list[str] = []
    """Folders and files outside the project to which yurt may write when a link of the project leads there."""


FIELDS: dict[Consent, str] = {"address": "addresses", "build": "builds", "file": "files", "write": "writes"}


def of(label: str, folder: str = "") -> Trusted:
    """Return what the user has agreed to for a project; nothing if the record is absent, damaged or of another folder.

    `folder` may be left out where only the label of the project is known.
    """
    try:
        found = msgspec.json.decode(_file(label).read_bytes(), type=Trusted)
    except (OSError, msgspec.MsgspecError):
        return Trusted(folder)
    return found if folder in ("", found.folder) else Trusted(folder)


def add(label: str, folder: str, kind: Consent, names: Iterable[str]) -> Trusted:
    """Record that the user agrees; return all that the project may do now."""
    with locked(_file(label)):
        known, field = of(label, folder), FIELDS[kind]
        made = msgspec.structs.replace(known, **{field: sorted({*getattr(known, field), *names})})
        paths.write_private(_file(label), msgspec.json.encode(made))
        return made


def forget(label: str) -> None:
    """Forget what the user has agreed to for a project."""
    _file(label).unlink(missing_ok=True)


def _file(label: str) -> Path:
    """Return the file of a project, whatever its name is: the project itself can change that."""
    file = paths.data_home() / "trusted" / f"{label.rpartition('-')[2]}.json"
    paths.safe(str(file))
    return file
